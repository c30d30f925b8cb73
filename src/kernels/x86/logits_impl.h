// Rows of logits on sixteen lanes.
#pragma once
#include "kernels/best_candidates.h"
#include "kernels/entries.h"
#include "kernels/ref/math.h"
#include "kernels/x86/for_lanes.h"
#include "kernels/x86/math16.h"

namespace octavo::OCTAVO_ISA {

/// The largest number of a row; NaN is passed over. A maximum has no order, so four chains run side by side.
static inline float max_of(const float* x, std::uint32_t n) {
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
  const float max_logit = max_of(logits, n);
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

Candidate largest(const float* logits, std::uint32_t n, float* chunk_max) {
  const V16f lowest = broadcast(-__builtin_inff()), infinity = broadcast(__builtin_inff()), ones = broadcast(1.0F);
  V16f numbers = ones;  // lanes become 0 where one is not
  bool all_numbers = true;
  float best = -__builtin_inff();
  std::uint32_t best_begin = 0;
  for (std::uint32_t begin = 0; begin < n; begin += kLogitChunk) {
    const std::uint32_t end = n - begin < kLogitChunk ? n : begin + kLogitChunk;
    V16f maxima = lowest;
    std::uint32_t i = begin;
    for (; i + 16 <= end; i += 16) {
      const V16f x = load(logits + i);
      maxima = max(x, maxima);
      numbers = keep(less(x, infinity), numbers);
    }
    float chunk = largest(maxima);
    for (; i < end; ++i) {
      chunk = logits[i] > chunk ? logits[i] : chunk;
      all_numbers = all_numbers && logits[i] < __builtin_inff();
    }
    chunk_max[begin / kLogitChunk] = chunk;
    if (chunk > best) {
      best = chunk;
      best_begin = begin;
    }
  }
  std::uint32_t id = best_begin;
  while (id + 1 < n && logits[id] != best) ++id;
  if (logits[id] != best) id = 0;  // nothing but NaN
  all_numbers = all_numbers && mask_bits(equal(numbers, ones)) == 0xFFFF;
  return {{static_cast<std::int32_t>(id)}, all_numbers ? logits[id] : __builtin_nanf("")};
}

std::uint32_t not_below(const float* logits, std::uint32_t begin, std::uint32_t end, float least, Candidate* out) {
  const V16f threshold = broadcast(least);
  std::uint32_t found = 0;
  const auto take = [&](std::uint32_t i) { out[found++] = {{static_cast<std::int32_t>(i)}, logits[i]}; };
  std::uint32_t i = begin;
  for (; i + 16 <= end; i += 16) {
    std::uint32_t hits = mask_bits(less(load(logits + i), threshold)) ^ 0xFFFFU;
    for (; hits != 0; hits &= hits - 1) take(i + static_cast<std::uint32_t>(__builtin_ctz(hits)));
  }
  for (; i < end; ++i) {
    if (!(logits[i] < least)) take(i);
  }
  return found;
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

template <bool kStore>
static inline float exp_sum_of(const float* x, float factor, float max, std::uint32_t n, float* out) {
  const V16f scale = broadcast(factor), shift = broadcast(max);
  V16f total = zero();
  std::uint32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const V16f powers = exp(sub(mul(load(x + i), scale), shift));
    if constexpr (kStore) store(out + i, powers);
    total = add(total, powers);
  }
  if (i < n) {
    const M16 present = lanes_between(0, static_cast<std::int32_t>(n - i));
    const V16f powers = keep(present, exp(sub(mul(load_first(x + i, n - i), scale), shift)));
    if constexpr (kStore) store_first(out + i, powers, n - i);
    total = add(total, powers);
  }
  return sum(total);
}

float exp_sum(const float* x, float factor, float max, std::uint32_t n, float* out) {
  return out == nullptr ? exp_sum_of<false>(x, factor, max, n, out) : exp_sum_of<true>(x, factor, max, n, out);
}

}  // namespace octavo::OCTAVO_ISA
