// Lengths of prompts and answers, as a curve of quantiles.
//
// The curve between two quantiles is interpolated between logarithms, as lengths spread over decades. Drawing from the
// curve keeps both humps of a two-humped trace, which a fitted log-normal would smooth away.
#pragma once
#include <cstdint>
#include <vector>

namespace octavo {

struct Quantile {
  double share = 0;   // of requests that are at most so long, 0 to 1
  double tokens = 0;  // >= 1
};

/// Ascends in both fields, from share 0 to share 1.
using LengthCurve = std::vector<Quantile>;

/// The length that `share` of all requests do not exceed.
[[nodiscard]] std::uint32_t length_at(const LengthCurve& curve, double share);

/// Every request alike.
[[nodiscard]] LengthCurve fixed_curve(double tokens);

/// ln(tokens) is normal; cut to lengths from `least` to `most` and to four deviations on either side.
[[nodiscard]] LengthCurve lognormal_curve(double mean, double deviation, double least, double most);

/// Through `quantiles`: two or more that ascend. Where they do not reach share 0 or 1, the log-normal through the two
/// outermost goes on to the thousandth request; no length is below 1 or above `most`.
[[nodiscard]] LengthCurve quantile_curve(const std::vector<Quantile>& quantiles, double most);

}  // namespace octavo
