// A distribution of positive figures in little memory: counts in buckets a half percent wide.
//
// Quantiles are those of the bucket's middle, so within a quarter percent; mean and maximum are exact. Figures below a
// millionth count as none. Equal inputs in equal order give equal answers.
#pragma once
#include <cstddef>
#include <vector>

#include "octavo/simulate.h"

namespace octavo {

class Tally {
 public:
  /// `weight`: how often it counts, as the time for which a gauge stood at `value`.
  void add(double value, double weight = 1);

  [[nodiscard]] double mean() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  /// The figure that `share` of the weight does not exceed; 0 where nothing was added.
  [[nodiscard]] double quantile(double share) const;
  [[nodiscard]] Spectrum spectrum() const;

 private:
  std::vector<double> buckets_;
  double weight_ = 0, sum_ = 0, max_ = 0;
  std::uint64_t count_ = 0;
  double last_value_ = -1;
  std::size_t last_bucket_ = 0;
};

}  // namespace octavo
