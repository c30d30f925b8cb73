#include <limits>

#include "kernels/best_candidates.h"
#include "kernels/entries.h"
#include "kernels/ref/lanes.h"
#include "kernels/ref/math.h"

namespace octavo::ref {
namespace {

/// The largest number; NaN is passed over.
float max_of(const float* x, std::uint32_t n) {
  float max = -std::numeric_limits<float>::infinity();
  for (std::uint32_t i = 0; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

}  // namespace

float log_sum_exp(const float* logits, std::uint32_t n) {
  const float max = max_of(logits, n);
  Lanes sum;
  for (std::uint32_t i = 0; i < n; ++i) sum[i] = sum[i] + exp(logits[i] - max);
  return max + log(sum.sum());
}

Candidate largest(const float* logits, std::uint32_t n, float* chunk_max) {
  Candidate best{{0}, -std::numeric_limits<float>::infinity()};
  bool numbers = true;
  for (std::uint32_t i = 0; i < n; ++i) {
    float& max = chunk_max[i / kLogitChunk];
    if (i % kLogitChunk == 0) max = -std::numeric_limits<float>::infinity();
    max = logits[i] > max ? logits[i] : max;
    if (logits[i] > best.logit) best = {{static_cast<std::int32_t>(i)}, logits[i]};
    numbers = numbers && logits[i] < std::numeric_limits<float>::infinity();
  }
  if (!numbers) best.logit = std::numeric_limits<float>::quiet_NaN();
  return best;
}

std::uint32_t not_below(const float* logits, std::uint32_t begin, std::uint32_t end, float least, Candidate* out) {
  std::uint32_t found = 0;
  for (std::uint32_t i = begin; i < end; ++i) {
    if (!(logits[i] < least)) out[found++] = {{static_cast<std::int32_t>(i)}, logits[i]};
  }
  return found;
}

std::uint32_t top(const float* logits, std::uint32_t n, std::uint32_t k, Candidate* out) {
  BestCandidates best(out, k);
  for (std::uint32_t i = 0; i < n; ++i) best.offer({{static_cast<std::int32_t>(i)}, logits[i]});
  return best.sort();
}

float exp_sum(const float* x, float factor, float max, std::uint32_t n, float* out) {
  Lanes sum;
  for (std::uint32_t i = 0; i < n; ++i) {
    const float power = exp(x[i] * factor - max);
    sum[i] = sum[i] + power;
    if (out != nullptr) out[i] = power;
  }
  return sum.sum();
}

}  // namespace octavo::ref
