#include "kernels/ref/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/math_constants.h"

namespace octavo::ref {
namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float from_bits(std::uint32_t x) { return std::bit_cast<float>(x); }

/// exp(x) = 2^n (1 + q); `shifted` holds n in its low bits.
struct ExpParts {
  std::uint32_t shifted;
  float q;
};

ExpParts exp_parts(float x) {
  const float shifted = std::fma(x, kLog2E, kRoundMagic);
  const float n = shifted - kRoundMagic;
  float r = std::fma(n, -kLn2Hi, x);
  r = std::fma(n, -kLn2Lo, r);
  float p = kExpC6;
  p = std::fma(p, r, kExpC5);
  p = std::fma(p, r, kExpC4);
  p = std::fma(p, r, kExpC3);
  p = std::fma(p, r, kExpC2);
  return {bits(shifted), std::fma(r * r, p, r)};
}

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

/// The value of a polynomial in z, coefficients ascending, by Horner's rule.
template <std::size_t n>
double horner(const double (&c)[n], double z) {
  double sum = c[n - 1];
  for (std::size_t i = n - 1; i-- > 0;) sum = sum * z + c[i];
  return sum;
}

/// Natural logarithm of a positive, normal number: x = 2^e m, log m = 2 atanh((m - 1) / (m + 1)).
double log_f64(double x) {
  constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  const auto all = std::bit_cast<std::uint64_t>(x);
  const auto rest = all - std::bit_cast<std::uint64_t>(kSqrtHalf);
  const auto e = static_cast<std::int64_t>(rest) >> 52;
  const double m = std::bit_cast<double>(all - (static_cast<std::uint64_t>(e) << 52));  // in [sqrt 1/2, sqrt 2)
  constexpr double kAtanh[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,
                               1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19};
  const double s = (m - 1) / (m + 1);
  return static_cast<double>(e) * kLn2 + 2 * s * horner(kAtanh, s * s);
}

constexpr double kRoundMagic64 = 0x1.8p+52;

/// exp for |x| < 700 by its Taylor series.
double exp_f64(double x) {
  const double shifted = x * (1 / kLn2) + kRoundMagic64;
  const double n = shifted - kRoundMagic64;
  const double r = (x - n * 0x1.62e42fefp-1) - n * 0x1.473de6af278edp-34;
  double sum = 1;
  for (int k = 14; k > 0; --k) sum = sum * r / k + 1;
  return sum * std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) << 52) + (std::uint64_t{1023} << 52));
}

/// x = quadrant * pi/2 + r, |r| <= pi/4. The first part of pi/2 has 33 bits: its product with n is exact.
struct Angle {
  double r;
  unsigned quadrant;
};

Angle reduce(float x) {
  const double shifted = static_cast<double>(x) * 0x1.45f306dc9c883p-1 + kRoundMagic64;
  const double n = shifted - kRoundMagic64;
  const double r = (static_cast<double>(x) - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34;
  return {r, static_cast<unsigned>(std::bit_cast<std::uint64_t>(shifted)) & 3U};
}

double sin_series(double r) {
  constexpr double kSin[] = {1.0,          -1.0 / 6,        1.0 / 120,        -1.0 / 5040,
                             1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000};
  return r * horner(kSin, r * r);
}

double cos_series(double r) {
  constexpr double kCos[] = {1.0,         -1.0 / 2,       1.0 / 24,        -1.0 / 720,
                             1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200};
  return horner(kCos, r * r);
}

/// sin(x + quarter_turns * pi/2).
float sin_turned(float x, unsigned quarter_turns) {
  const Angle angle = reduce(x);
  const unsigned quadrant = (angle.quadrant + quarter_turns) & 3U;
  const double value = (quadrant & 1U) != 0 ? cos_series(angle.r) : sin_series(angle.r);
  return static_cast<float>((quadrant & 2U) != 0 ? -value : value);
}

}  // namespace

float exp(float x) {
  const auto [shifted, q] = exp_parts(x);
  if (x < kExpLow) return 0.0F;
  if (!(x <= kExpHigh)) return x + std::numeric_limits<float>::infinity();
  return from_bits(bits(1.0F + q) + (shifted << 23));
}

float tanh(float x) {
  constexpr std::uint32_t kSign = 0x80000000U;
  const float magnitude = from_bits(bits(x) & ~kSign);
  const float twice = magnitude + magnitude;
  const auto [shifted, q] = exp_parts(kTanhMax < twice ? kTanhMax : twice);
  const float power = from_bits((shifted << 23) + bits(1.0F));
  const float expm1 = std::fma(power, q, power - 1.0F);
  return from_bits(bits(expm1 / (expm1 + 2.0F)) | (bits(x) & kSign));
}

float silu(float x) { return x / (1.0F + exp(-x)); }

float gelu_tanh(float x) {
  const float inner = kGeluBeta * std::fma(kGeluKappa, (x * x) * x, x);
  return (0.5F * x) * (1.0F + tanh(inner));
}

float soft_cap(float x, float cap) { return cap * tanh(x / cap); }

float log(float x) {
  if (x == 0.0F) return -std::numeric_limits<float>::infinity();
  if (!(x > 0.0F)) return std::numeric_limits<float>::quiet_NaN();
  if (x > std::numeric_limits<float>::max()) return x;
  return static_cast<float>(log_f64(x));
}

float sin(float x) { return sin_turned(x, 0); }
float cos(float x) { return sin_turned(x, 1); }

double pow(double base, double exponent) { return exp_f64(exponent * log_f64(base)); }

}  // namespace octavo::ref
