#include "cli/format.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace octavo {
namespace {

std::string scaled(std::uint64_t value, std::string_view one, std::string_view unit) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"", "k", "M", "G", "T"};
  double number = static_cast<double>(value);
  std::size_t prefix = 0;
  while (number >= 999.5 && prefix + 1 < kPrefixes.size()) {
    number /= 1000;
    ++prefix;
  }
  if (prefix == 0) return fmt::format("{}{}", value, one);
  return fmt::format("{:.{}f} {}{}", number, number < 99.95 ? 1 : 0, kPrefixes[prefix], unit);
}

}  // namespace

std::string human_bytes(std::uint64_t bytes) { return scaled(bytes, " bytes", "B"); }

std::string human_count(std::uint64_t count) { return scaled(count, "", ""); }

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const Error refused{ErrorCode::kInvalidArgument,
                      fmt::format("'{}' is not a size: write bytes, or a number with KiB, MiB, GiB or TiB", text), ""};
  double number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || !std::isfinite(number) || number < 0) return refused;

  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (unit.size() > 1 && unit.front() == ' ') unit.remove_prefix(1);
  double scale = 1;
  if (!unit.empty() && unit != "B") {
    constexpr std::string_view kUnits = "KMGT";
    const char prefix = unit.front() == 'k' ? 'K' : unit.front();
    const std::size_t power = kUnits.find(prefix);
    unit.remove_prefix(1);
    if (power == std::string_view::npos || (unit != "" && unit != "iB" && unit != "B" && unit != "i")) return refused;
    scale = std::pow(unit == "B" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  constexpr double kLimit = 0x1p62;
  if (number * scale >= kLimit) return refused;
  return static_cast<std::uint64_t>(number * scale);
}

}  // namespace octavo
