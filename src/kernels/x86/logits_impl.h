// Rows of logits on sixteen lanes.
#pragma once
#include "kernels/best_candidates.h"
#include "kernels/entries.h"
#include "kernels/ref/math.h"
#include "kernels/x86/for_lanes.h"
#include "kernels/x86/math16.h"

namespace octavo::OCTAVO_ISA {

/// The largest number of a row; NaN is passed over. A maximum has no order, so four chains run side by side.
static inline float largest_of(const float* x, std::uint32_t n) {
  const V16f lowest = broadcast(-__builtin_inff());
  V16f a = lowest, b = lowest, c = lowest, d = lowest;
  std::uint32_t i = 0;
  for (; i + 64 <= n; i += 64) {
    a = max(load(x + i), a);
    b = max(load(x + i + 16), b);
    c = max(load(x + i + 32), c);
    d = max(load(x + i + 48), d);
  }
  a = max(max(a, b), max(c, d));
  for (; i + 16 <= n; i += 16) a = max(load(x + i), a);
  float best = largest(a);
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

float log_sum_exp(const float* logits, std::uint32_t n) {
  const float max_logit = largest_of(logits, n);
  const V16f shift = broadcast(max_logit);
  V16f total = zero();
  std::uint32_t i = 0;
  for (; i + 16 <= n; i += 16) total = add(total, exp(sub(load(logits + i), shift)));
  if (i < n) {
    const M16 present = lanes_between(0, static_cast<std::int32_t>(n - i));
    total = add(total, keep(present, exp(sub(load_first(logits + i, n - i), shift))));
  }
  return max_logit + ref::log(sum(total));
}

TokenId argmax(const float* logits, std::uint32_t n) {
  const float best = largest_of(logits, n);
  const V16f wanted = broadcast(best);
  std::uint32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const std::uint32_t found = mask_bits(equal(load(logits + i), wanted));
    if (found != 0) return {static_cast<std::int32_t>(i) + __builtin_ctz(found)};
  }
  for (; i < n; ++i) {
    if (logits[i] == best) return {static_cast<std::int32_t>(i)};
  }
  return {0};
}

std::uint32_t top(const float* logits, std::uint32_t n, std::uint32_t k, Candidate* out) {
  BestCandidates best(out, k);
  const auto offer = [&](std::uint32_t id) { best.offer({{static_cast<std::int32_t>(id)}, logits[id]}); };
  std::uint32_t i = 0;
  while (i < n && !best.full()) offer(i++);
  V16f threshold = broadcast(best.threshold());
  for (; i + 16 <= n; i += 16) {
    std::uint32_t above = mask_bits(less(threshold, load(logits + i)));
    if (above == 0) continue;
    for (; above != 0; above &= above - 1) offer(i + static_cast<std::uint32_t>(__builtin_ctz(above)));
    threshold = broadcast(best.threshold());
  }
  while (i < n) offer(i++);
  return best.sort();
}

float exp_sum(const float* x, float max, std::uint32_t n, float* out) {
  const V16f shift = broadcast(max);
  V16f total = zero();
  std::uint32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const V16f weights = exp(sub(load(x + i), shift));
    store(out + i, weights);
    total = add(total, weights);
  }
  if (i < n) {
    const M16 present = lanes_between(0, static_cast<std::int32_t>(n - i));
    const V16f weights = keep(present, exp(sub(load_first(x + i, n - i), shift)));
    store_first(out + i, weights, n - i);
    total = add(total, weights);
  }
  return sum(total);
}

}  // namespace octavo::OCTAVO_ISA
