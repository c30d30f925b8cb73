#include "model/rope.h"

#include "kernels/kernels.h"

namespace octavo {
namespace {

constexpr float kTwoPi = 6.28318530717958647692F;

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
  std::vector<float> freqs(rope.rot_dims / 2);
  fill_inv_freq(rope.base, rope.rot_dims, freqs.data());
  for (std::size_t i = 0; i < freqs.size(); ++i) {
    freqs[i] /= rope.linear_factor;
    if (!rope.factors.empty()) freqs[i] /= rope.factors[i];
    if (rope.llama3.factor != 0) freqs[i] = stretch(rope.llama3, freqs[i]);
  }
  return freqs;
}

}  // namespace octavo
