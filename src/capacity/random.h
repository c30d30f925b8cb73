// Chance that is the same for a seed on every machine: no distribution of the standard library, and no function of
// libm whose last bit is its own. What is used of <cmath> is exact by IEEE 754, and the build contracts nothing.
#pragma once
#include <cstdint>

namespace octavo {

/// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }  // [0, 1)
  double normal();                                                             // mean 0, deviation 1
  double gamma(double shape);                                                  // mean `shape`, > 0

 private:
  double uniform_above_zero() { return static_cast<double>((next() >> 11U) + 1) * 0x1.0p-53; }  // (0, 1]

  std::uint64_t state_;
};

/// Within a few units of the last place; of finite numbers, `portable_log` of positive ones.
[[nodiscard]] double portable_exp(double x);
[[nodiscard]] double portable_log(double x);

/// The share of a normal distribution below `z`, and back; |z| <= 8, share within (0, 1).
[[nodiscard]] double normal_share(double z);
[[nodiscard]] double normal_quantile(double share);

}  // namespace octavo
