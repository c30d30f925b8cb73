#include "cli/validators.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace octavo {

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        std::uint64_t value = 0;
        const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (problem == std::errc() && rest == text.data() + text.size() && value >= least && value <= most) return "";
        return fmt::format("'{}' is not a whole number from {} to {}", text, least, most);
      },
      "");
}

CLI::Validator auto_or(CLI::Validator other) {
  return CLI::Validator(
      [other = std::move(other)](std::string& text) -> std::string {
        if (text == "auto") return "";
        const std::string refused = other(text);
        return refused.empty() ? refused : refused + ", nor auto";
      },
      "");
}

CLI::Validator finite() {
  return CLI::Validator(
      [](std::string& text) {
        float value = 0;
        return CLI::detail::lexical_cast(text, value) && std::isfinite(value) ? "" : "'" + text + "' is not a number";
      },
      "");
}

}  // namespace octavo
