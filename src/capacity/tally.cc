#include "capacity/tally.h"

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

constexpr double kLeast = 1e-6;  // smaller figures count as none
const double kWidth = std::log(1.005);

std::size_t bucket_of(double value) {
  return value <= kLeast ? 0 : 1 + static_cast<std::size_t>(std::log(value / kLeast) / kWidth);
}

double middle_of(std::size_t bucket) {
  return bucket == 0 ? 0 : kLeast * std::exp((static_cast<double>(bucket) - 0.5) * kWidth);
}

}  // namespace

void Tally::add(double value, double weight) {
  if (value != last_value_) {  // streams of one step wait equally long
    last_value_ = value, last_bucket_ = bucket_of(value);
    if (last_bucket_ >= buckets_.size()) buckets_.resize(last_bucket_ + 1);
  }
  buckets_[last_bucket_] += weight;
  weight_ += weight;
  sum_ += value * weight;
  max_ = std::max(max_, value);
  ++count_;
}

double Tally::quantile(double share) const {
  double left = share * weight_;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    left -= buckets_[i];
    if (left <= 0 && buckets_[i] > 0) return std::min(middle_of(i), max_);
  }
  return max_;
}

Spectrum Tally::spectrum() const {
  Spectrum out{count_, mean(), quantile(.5), quantile(.9), quantile(.95), quantile(.99), max_, {}};
  for (int percent = 0; count_ > 0 && percent <= 100; ++percent) out.percentiles.push_back(quantile(percent / 100.0));
  return out;
}

}  // namespace octavo
