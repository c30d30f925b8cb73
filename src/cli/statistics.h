// Figures of many runs or requests as one.
#pragma once
#include <vector>

namespace octavo {

/// 0 of nothing.
[[nodiscard]] double mean(const std::vector<double>& values);
/// Between ranks, linearly, as numpy.percentile; `share` of 0.99 is p99. 0 of nothing.
[[nodiscard]] double quantile(std::vector<double> values, double share);
[[nodiscard]] double median(std::vector<double> values);

}  // namespace octavo
