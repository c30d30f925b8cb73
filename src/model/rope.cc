#include "model/rope.h"

#include <bit>
#include <cstdint>

namespace octavo {
namespace {

constexpr double kLn2 = 0.693147180559945309417232121458;
constexpr float kTwoPi = 6.28318530717958647692F;

/// log2 of a positive normal x: exponent, and atanh's series for the mantissa in [sqrt(1/2), sqrt(2)).
double log2_of(double x) {
  auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL;
  auto mantissa = std::bit_cast<double>(bits);
  if (mantissa > 1.41421356237309504880) {
    mantissa /= 2;
    ++exponent;
  }
  const double t = (mantissa - 1) / (mantissa + 1);  // |t| < 0.1716: 12 terms reach 2^-64
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * (t * t) + 1.0 / k;
  return static_cast<double>(exponent) + 2 * t * sum / kLn2;
}

/// 2^x for |x| < 1000: the integer part is the exponent, the rest in [-1/2, 1/2] goes through exp's series.
double exp2_of(double x) {
  const auto whole = static_cast<std::int64_t>(x < 0 ? x - 0.5 : x + 0.5);
  const double y = (x - static_cast<double>(whole)) * kLn2;
  double sum = 1;
  for (int k = 17; k >= 1; --k) sum = 1 + sum * y / k;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(whole + 1023) << 52);
}

/// The llama3 rule: long waves are stretched by `factor`, short ones kept, those between blended.
float stretch(const RopeSpec::Llama3& rule, float freq) {
  const auto context = static_cast<float>(rule.original_context);
  const float wave = kTwoPi / freq;
  if (wave < context / rule.high_freq_factor) return freq;
  if (wave > context / rule.low_freq_factor) return freq / rule.factor;
  const float smooth = (context / wave - rule.low_freq_factor) / (rule.high_freq_factor - rule.low_freq_factor);
  return (1 - smooth) * freq / rule.factor + smooth * freq;
}

}  // namespace

std::vector<float> inv_freq(const RopeSpec& rope) {
  std::vector<float> freqs;
  const double log2_base = log2_of(rope.base);
  for (std::uint32_t i = 0; i < rope.rot_dims / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rope.rot_dims);
    float freq = 1.0F / static_cast<float>(exp2_of(exponent * log2_base));
    freq /= rope.linear_factor;
    if (!rope.factors.empty()) freq /= rope.factors[i];
    if (rope.llama3.factor != 0) freq = stretch(rope.llama3, freq);
    freqs.push_back(freq);
  }
  return freqs;
}

}  // namespace octavo
