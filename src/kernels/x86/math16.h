// ref/math.h on sixteen lanes: the same operations in the same order. Include after a v16 header.
#pragma once
#include "kernels/math_constants.h"

namespace octavo::OCTAVO_ISA {

struct ExpParts16 {
  V16i shifted;  // n in the low bits
  V16f q;        // exp(x) = 2^n (1 + q)
};

static inline ExpParts16 exp_parts(V16f x) {
  const V16f magic = broadcast(kRoundMagic);
  const V16f shifted = fma(x, broadcast(kLog2E), magic);
  const V16f n = sub(shifted, magic);
  V16f r = fma(n, broadcast(-kLn2Hi), x);
  r = fma(n, broadcast(-kLn2Lo), r);
  V16f p = broadcast(kExpC6);
  p = fma(p, r, broadcast(kExpC5));
  p = fma(p, r, broadcast(kExpC4));
  p = fma(p, r, broadcast(kExpC3));
  p = fma(p, r, broadcast(kExpC2));
  return {bits(shifted), fma(mul(r, r), p, r)};
}

static inline V16f exp(V16f x) {
  const ExpParts16 parts = exp_parts(x);
  const V16f value = from_bits(add(bits(add(broadcast(1.0F), parts.q)), shift_left<23>(parts.shifted)));
  const V16f or_inf = select(not_less_equal(x, broadcast(kExpHigh)), add(x, broadcast(__builtin_inff())), value);
  return clear(less(x, broadcast(kExpLow)), or_inf);
}

static inline V16f tanh(V16f x) {
  const V16i sign = bit_and(bits(x), broadcast_int(INT32_MIN));
  const V16f magnitude = from_bits(bit_and(bits(x), broadcast_int(INT32_MAX)));
  const V16f one = broadcast(1.0F);
  const ExpParts16 parts = exp_parts(min(broadcast(kTanhMax), add(magnitude, magnitude)));
  const V16f power = from_bits(add(shift_left<23>(parts.shifted), bits(one)));
  const V16f expm1 = fma(power, parts.q, sub(power, one));
  return from_bits(bit_or(bits(div(expm1, add(expm1, broadcast(2.0F)))), sign));
}

static inline V16f silu(V16f x) {
  const V16f minus_x = from_bits(bit_xor(bits(x), broadcast_int(INT32_MIN)));
  return div(x, add(broadcast(1.0F), exp(minus_x)));
}

static inline V16f gelu_tanh(V16f x) {
  const V16f inner = mul(broadcast(kGeluBeta), fma(broadcast(kGeluKappa), mul(mul(x, x), x), x));
  return mul(mul(broadcast(0.5F), x), add(broadcast(1.0F), tanh(inner)));
}

static inline V16f soft_cap(V16f x, V16f cap) { return mul(cap, tanh(div(x, cap))); }

/// f32 rounded to bf16, in the upper half of each lane: nearest even, denormals to signed zero, NaN quieted.
static inline V16i bf16_high(V16f x) {
  const V16i all = bits(x);
  const V16i high_half = broadcast_int(static_cast<std::int32_t>(0xFFFF0000U));
  const V16i odd = bit_and(shift_right<16>(all), broadcast_int(1));
  const V16i rounded = bit_and(add(all, add(odd, broadcast_int(0x7FFF))), high_half);
  const V16i quiet = bit_and(bit_or(all, broadcast_int(0x00400000)), high_half);
  const V16f number = select(equal(x, x), from_bits(rounded), from_bits(quiet));
  const M16 tiny = equal(bit_and(all, broadcast_int(0x7F800000)), broadcast_int(0));
  return bits(select(tiny, from_bits(bit_and(all, broadcast_int(INT32_MIN))), number));
}

static inline V16f round_to_bf16(V16f x) { return from_bits(bf16_high(x)); }

/// 16 pairs of bf16 widened: the even (low) and the odd (high) one of each.
static inline V16f even_bf16(V16f pairs) { return from_bits(shift_left<16>(bits(pairs))); }
static inline V16f odd_bf16(V16f pairs) {
  return from_bits(bit_and(bits(pairs), broadcast_int(static_cast<std::int32_t>(0xFFFF0000U))));
}

}  // namespace octavo::OCTAVO_ISA
