// Row operations on sixteen lanes. Absent lanes of a tail read +0, which no sum of squares can see.
#pragma once
#include "kernels/entries.h"
#include "kernels/x86/for_lanes.h"
#include "kernels/x86/math16.h"

namespace octavo::OCTAVO_ISA {

void rms_norm(const float* x, const float* gain, float eps, std::uint32_t n, float* out) {
  V16f squares = zero();
  for_lanes(n, [&](std::uint32_t i, auto lanes) {
    const V16f value = load(x + i, lanes);
    squares = fma(value, value, squares);
  });
  const float mean = sum(squares) / static_cast<float>(n);
  const V16f inverse = broadcast(1.0F / square_root(mean + eps));
  for_lanes(n, [&](std::uint32_t i, auto lanes) {
    store(out + i, mul(mul(load(x + i, lanes), inverse), load(gain + i, lanes)), lanes);
  });
}

void add(float* x, const float* y, std::uint32_t n) {
  for_lanes(n, [&](std::uint32_t i, auto lanes) { store(x + i, add(load(x + i, lanes), load(y + i, lanes)), lanes); });
}

void scale(float* x, float factor, std::uint32_t n) {
  const V16f by = broadcast(factor);
  for_lanes(n, [&](std::uint32_t i, auto lanes) { store(x + i, mul(load(x + i, lanes), by), lanes); });
}

void gated(Activation act, const float* gate, const float* up, std::uint32_t n, float* out) {
  if (act == Activation::kSilu) {
    for_lanes(n, [&](std::uint32_t i, auto lanes) {
      store(out + i, mul(silu(load(gate + i, lanes)), load(up + i, lanes)), lanes);
    });
  } else {
    for_lanes(n, [&](std::uint32_t i, auto lanes) {
      store(out + i, mul(gelu_tanh(load(gate + i, lanes)), load(up + i, lanes)), lanes);
    });
  }
}

void soft_cap(float* x, float cap, std::uint32_t n) {
  const V16f limit = broadcast(cap);
  for_lanes(n, [&](std::uint32_t i, auto lanes) { store(x + i, soft_cap(load(x + i, lanes), limit), lanes); });
}

static inline void load_pairs(const float* p, AllLanes, V16f& even, V16f& odd) {
  split_pairs(load(p), load(p + 16), even, odd);
}
static inline void load_pairs(const float* p, FirstLanes lanes, V16f& even, V16f& odd) {
  const std::uint32_t floats = 2 * lanes.count, first = floats < 16 ? floats : 16;
  split_pairs(load_first(p, first), load_first(p + first, floats - first), even, odd);
}

void rope(float* heads, std::uint32_t num_heads, std::uint32_t head_dim, const RopeTable& table, std::uint32_t pos) {
  const std::uint32_t half = table.rot_dims / 2;
  const float* cos_sin = table.cos_sin + std::uint64_t{pos} * table.rot_dims;
  for_lanes(half, [&](std::uint32_t i, auto lanes) {
    V16f cos, sin;
    load_pairs(cos_sin + 2 * i, lanes, cos, sin);
    for (std::uint32_t h = 0; h < num_heads; ++h) {
      float* head = heads + std::uint64_t{h} * head_dim + i;
      const V16f x0 = load(head, lanes), x1 = load(head + half, lanes);
      store(head, fms(x0, cos, mul(x1, sin)), lanes);
      store(head + half, fma(x1, cos, mul(x0, sin)), lanes);
    }
  });
}

}  // namespace octavo::OCTAVO_ISA
