#include <limits>

#include "kernels/best_candidates.h"
#include "kernels/entries.h"
#include "kernels/ref/lanes.h"
#include "kernels/ref/math.h"

namespace octavo::ref {
namespace {

/// The largest number; NaN is passed over.
float largest(const float* x, std::uint32_t n) {
  float max = -std::numeric_limits<float>::infinity();
  for (std::uint32_t i = 0; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

}  // namespace

float log_sum_exp(const float* logits, std::uint32_t n) {
  const float max = largest(logits, n);
  Lanes sum;
  for (std::uint32_t i = 0; i < n; ++i) sum[i] = sum[i] + exp(logits[i] - max);
  return max + log(sum.sum());
}

TokenId argmax(const float* logits, std::uint32_t n) {
  const float max = largest(logits, n);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (logits[i] == max) return {static_cast<std::int32_t>(i)};
  }
  return {0};
}

std::uint32_t top(const float* logits, std::uint32_t n, std::uint32_t k, Candidate* out) {
  BestCandidates best(out, k);
  for (std::uint32_t i = 0; i < n; ++i) best.offer({{static_cast<std::int32_t>(i)}, logits[i]});
  return best.sort();
}

float exp_sum(const float* x, float max, std::uint32_t n, float* out) {
  Lanes sum;
  for (std::uint32_t i = 0; i < n; ++i) {
    out[i] = exp(x[i] - max);
    sum[i] = sum[i] + out[i];
  }
  return sum.sum();
}

}  // namespace octavo::ref
