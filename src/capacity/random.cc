#include "capacity/random.h"

#include <algorithm>
#include <cmath>

namespace octavo {

std::uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

double Random::normal() {  // Marsaglia's polar method; the second number is dropped, as no state keeps it
  for (;;) {
    const double x = 2 * uniform() - 1, y = 2 * uniform() - 1, square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * portable_log(square) / square);
  }
}

double Random::gamma(double shape) {  // Marsaglia and Tsang, 2000
  if (shape < 1) {
    const double larger = gamma(shape + 1);
    return larger * portable_exp(portable_log(uniform_above_zero()) / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (portable_log(uniform_above_zero()) < x * x / 2 + d - d * v + d * portable_log(v)) return d * v;
  }
}

double portable_exp(double x) {
  constexpr double kLn2High = 0x1.62e42fefa0000p-1, kLn2Low = 0x1.cf79abc9e3b3ap-40;
  x = std::clamp(x, -800.0, 800.0);  // beyond, the result is 0 or infinite anyway
  const double k = std::floor(x / (kLn2High + kLn2Low) + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1;
  for (int n = 14; n > 0; --n) sum = 1 + sum * r / n;
  return std::ldexp(sum, static_cast<int>(k));
}

double portable_log(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // [0.5, 1)
  if (m < 0x1.6a09e667f3bcdp-1) m *= 2, --exponent;
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int n = 23; n > 0; n -= 2) sum = sum * square + 1.0 / n;
  return exponent * kLn2 + 2 * s * sum;
}

double normal_share(double z) {  // Marsaglia's series
  if (z < 0) return 1 - normal_share(-z);
  double term = z, sum = z;
  for (int n = 3; term > sum * 0x1p-54; n += 2) {
    term *= z * z / n;
    sum += term;
  }
  constexpr double kInverseRootOf2Pi = 0x1.9884533d43651p-2;
  return 0.5 + sum * kInverseRootOf2Pi * portable_exp(-z * z / 2);
}

double normal_quantile(double share) {
  double low = -8, high = 8;
  for (int halvings = 0; halvings < 60; ++halvings) {
    const double middle = (low + high) / 2;
    (normal_share(middle) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace octavo
