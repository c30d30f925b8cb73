#include "capacity/workload_distribution.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "octavo/workload.h"

namespace octavo {
namespace {

constexpr const char* kForms = "write 512, p50=1020,p90=2735,p99=4142, or lognormal=6.63/0.98";

Error refused(std::string_view part, const std::string& why) {
  return {ErrorCode::kInvalidArgument, fmt::format("--workload: {}: {}", part, why), "workload"};
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// Cuts the text in front of the first `separator` off `rest`.
std::string_view next_field(std::string_view& rest, char separator) {
  const std::size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view field = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return field;
}

Result<double> read_tokens(std::string_view part, std::string_view what, std::string_view text) {
  const auto value = number_in(text);
  if (!value || *value < 1 || *value > kMaxRequestTokens) {
    return refused(part,
                   fmt::format("{}'{}' is not a length of 1 to {} tokens; {}", what, text, kMaxRequestTokens, kForms));
  }
  return *value;
}

Result<LengthCurve> read_lognormal(std::string_view part, std::string_view text) {
  const std::string_view first = next_field(text, '/');
  const auto mean = number_in(first), deviation = number_in(text);
  if (!mean || !deviation) {
    return refused(part, fmt::format("lognormal='{}' has not the form mean/deviation of the logarithm, as 6.63/0.98",
                                     text.empty() ? first : text));
  }
  constexpr double kMostDeviation = 5;
  if (*deviation <= 0 || *deviation > kMostDeviation) {
    return refused(
        part, fmt::format("the logarithm's deviation {} is not above 0 and at most {}", *deviation, kMostDeviation));
  }
  const double most = *mean + 4 * *deviation;
  if (*mean < 0 || most > std::log(kMaxRequestTokens)) {
    return refused(part, fmt::format("lognormal={}/{} is out of bounds: its median is to be 1 token or more, and four "
                                     "deviations above it at most {} tokens: mean + 4 x deviation is {:.2f}, at most "
                                     "{:.2f}",
                                     *mean, *deviation, kMaxRequestTokens, most, std::log(kMaxRequestTokens)));
  }
  return lognormal_curve(*mean, *deviation, 1, kMaxRequestTokens);
}

/// "p99.9" is .999, "min" 0 and "max" 1.
Result<double> read_share(std::string_view part, std::string_view name) {
  if (name == "min") return 0.0;
  if (name == "max") return 1.0;
  const auto percent = name.starts_with('p') ? number_in(name.substr(1)) : std::nullopt;
  if (!percent) return refused(part, fmt::format("'{}' is not a quantile; {}", name, kForms));
  if (*percent != 0 && *percent != 100 && !(*percent >= .1 && *percent <= 99.9)) {
    return refused(part, fmt::format("{} is not a quantile: write p0 (min), p0.1 to p99.9, or p100 (max)", name));
  }
  return *percent / 100;
}

Result<LengthCurve> read_quantiles(std::string_view part, std::string_view text) {
  std::vector<Quantile> quantiles;
  std::string_view before;
  while (!text.empty()) {
    std::string_view value = next_field(text, ',');
    const std::string_view name = next_field(value, '=');
    OCTAVO_TRY(const double share, read_share(part, name));
    OCTAVO_TRY(const double tokens, read_tokens(part, fmt::format("{}=", name), value));
    if (!quantiles.empty() && share <= quantiles.back().share) {
      return refused(part,
                     fmt::format("{} stands behind {}: write quantiles in ascending order, each once", name, before));
    }
    if (!quantiles.empty() && tokens < quantiles.back().tokens) {
      return refused(part, fmt::format("{}={} is less than {}={}: quantiles ascend", name, tokens, before,
                                       quantiles.back().tokens));
    }
    quantiles.push_back({share, tokens});
    before = name;
  }
  if (quantiles.size() < 2) {
    return refused(part, "one quantile says nothing of the others: give two or more, or a number for equal lengths");
  }
  return quantile_curve(quantiles, kMaxRequestTokens);
}

Result<LengthCurve> read_part(std::string_view part, std::string_view text) {
  constexpr std::string_view kLognormal = "lognormal=";
  if (text.starts_with(kLognormal)) return read_lognormal(part, text.substr(kLognormal.size()));
  if (text.find('=') != std::string_view::npos) return read_quantiles(part, text);
  OCTAVO_TRY(const double tokens, read_tokens(part, "", text));
  if (tokens != std::floor(tokens)) return refused(part, fmt::format("{} is not a whole number of tokens", text));
  return fixed_curve(tokens);
}

}  // namespace

bool looks_like_distribution(std::string_view source) {
  return source.starts_with("prompt:") || source.starts_with("output:");
}

Result<LengthDistributions> parse_distribution(std::string_view source) {
  LengthDistributions lengths;
  while (!source.empty()) {
    std::string_view text = next_field(source, ';');
    const std::string_view part = next_field(text, ':');
    if (part != "prompt" && part != "output") {
      return refused(part.empty() ? "''" : part, "is not a part: write prompt:...;output:...");
    }
    LengthCurve& curve = part == "prompt" ? lengths.prompt : lengths.output;
    if (!curve.empty()) return refused(part, "is there twice");
    OCTAVO_TRY(curve, read_part(part, text));
  }
  for (const auto& [part, curve] : {std::pair{"prompt", &lengths.prompt}, std::pair{"output", &lengths.output}}) {
    if (curve->empty()) return refused(part, fmt::format("is missing; {}", kForms));
  }
  return lengths;
}

}  // namespace octavo
