// Sixteen lanes as two 256-bit registers. The row kernels are written once over this and v16_avx512.h.
//
// Translation units with ISA flags share no inline function with others (the linker could keep the wrong copy), so
// everything here is inside the namespace of its instruction set and no STL is used.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define OCTAVO_ISA avx2

namespace octavo::avx2 {

/// Query rows whose V16f sums stay in the 16 registers, beside one of K or V and a query.
inline constexpr std::uint32_t kRegisterRows = 6;
/// (token, query head) pairs of an attention tile.
inline constexpr std::uint32_t kQueryTileRows = 12;

struct V16f {
  __m256 lo, hi;
};
struct V16i {
  __m256i lo, hi;
};
struct M16 {
  __m256 lo, hi;  // all ones or zero per lane
};

static inline V16f zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
static inline V16f broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
static inline V16f load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
static inline void store(float* p, V16f x) {
  _mm256_storeu_ps(p, x.lo);
  _mm256_storeu_ps(p + 8, x.hi);
}

static inline V16f add(V16f a, V16f b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
static inline V16f sub(V16f a, V16f b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
static inline V16f mul(V16f a, V16f b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
static inline V16f div(V16f a, V16f b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
/// a * b + c
static inline V16f fma(V16f a, V16f b, V16f c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
/// a * b - c
static inline V16f fms(V16f a, V16f b, V16f c) {
  return {_mm256_fmsub_ps(a.lo, b.lo, c.lo), _mm256_fmsub_ps(a.hi, b.hi, c.hi)};
}
/// a > b ? a : b, lane by lane: b if either is NaN.
static inline V16f max(V16f a, V16f b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
/// a < b ? a : b: b if either is NaN.
static inline V16f min(V16f a, V16f b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }

static inline V16i bits(V16f x) { return {_mm256_castps_si256(x.lo), _mm256_castps_si256(x.hi)}; }
static inline V16f from_bits(V16i x) { return {_mm256_castsi256_ps(x.lo), _mm256_castsi256_ps(x.hi)}; }
static inline V16i broadcast_int(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
static inline V16i add(V16i a, V16i b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
static inline V16i bit_and(V16i a, V16i b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
static inline V16i bit_or(V16i a, V16i b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
static inline V16i bit_xor(V16i a, V16i b) { return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)}; }
template <int n>
static inline V16i shift_left(V16i x) {
  return {_mm256_slli_epi32(x.lo, n), _mm256_slli_epi32(x.hi, n)};
}
template <int n>
static inline V16i shift_right(V16i x) {  // zeros come in
  return {_mm256_srli_epi32(x.lo, n), _mm256_srli_epi32(x.hi, n)};
}

static inline M16 less(V16f a, V16f b) {  // false for NaN
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
static inline M16 equal(V16f a, V16f b) {  // false for NaN
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}
static inline M16 not_less_equal(V16f a, V16f b) {  // true for NaN
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_NLE_UQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_NLE_UQ)};
}
static inline M16 equal(V16i a, V16i b) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.lo, b.lo)), _mm256_castsi256_ps(_mm256_cmpeq_epi32(a.hi, b.hi))};
}
/// Lanes begin <= j < end.
static inline M16 lanes_between(std::int32_t begin, std::int32_t end) {
  const __m256i j = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), j8 = _mm256_add_epi32(j, _mm256_set1_epi32(8));
  const __m256i before = _mm256_set1_epi32(begin - 1), after = _mm256_set1_epi32(end);
  const __m256i lo = _mm256_and_si256(_mm256_cmpgt_epi32(j, before), _mm256_cmpgt_epi32(after, j));
  const __m256i hi = _mm256_and_si256(_mm256_cmpgt_epi32(j8, before), _mm256_cmpgt_epi32(after, j8));
  return {_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
}
/// mask ? a : b
static inline V16f select(M16 mask, V16f a, V16f b) {
  return {_mm256_blendv_ps(b.lo, a.lo, mask.lo), _mm256_blendv_ps(b.hi, a.hi, mask.hi)};
}
/// mask ? a : +0
static inline V16f keep(M16 mask, V16f a) { return {_mm256_and_ps(mask.lo, a.lo), _mm256_and_ps(mask.hi, a.hi)}; }
/// mask ? +0 : a
static inline V16f clear(M16 mask, V16f a) {
  return {_mm256_andnot_ps(mask.lo, a.lo), _mm256_andnot_ps(mask.hi, a.hi)};
}
/// Bit j is lane j.
static inline std::uint32_t mask_bits(M16 mask) {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(mask.lo)) |
         static_cast<std::uint32_t>(_mm256_movemask_ps(mask.hi)) << 8;
}

/// The first `count` (0..16) floats, +0 in the other lanes; nothing behind them is touched.
static inline V16f load_first(const float* p, std::uint32_t count) {
  const M16 mask = lanes_between(0, static_cast<std::int32_t>(count));
  return {_mm256_maskload_ps(p, _mm256_castps_si256(mask.lo)), _mm256_maskload_ps(p + 8, _mm256_castps_si256(mask.hi))};
}
static inline void store_first(float* p, V16f x, std::uint32_t count) {
  const M16 mask = lanes_between(0, static_cast<std::int32_t>(count));
  _mm256_maskstore_ps(p, _mm256_castps_si256(mask.lo), x.lo);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(mask.hi), x.hi);
}

/// The tree 8-4-2-1 of the numerics contract.
static inline float sum(V16f x) {
  const __m256 eight = _mm256_add_ps(x.lo, x.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
static inline float largest(V16f x) {
  const __m256 eight = _mm256_max_ps(x.lo, x.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/// 32 floats as even and odd elements.
static inline void split_pairs(V16f first, V16f second, V16f& even, V16f& odd) {
  const auto ordered = [](__m256 x) {  // a shuffle leaves 64-bit groups in the order 0 2 1 3
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xD8));
  };
  even = {ordered(_mm256_shuffle_ps(first.lo, first.hi, 0x88)), ordered(_mm256_shuffle_ps(second.lo, second.hi, 0x88))};
  odd = {ordered(_mm256_shuffle_ps(first.lo, first.hi, 0xDD)), ordered(_mm256_shuffle_ps(second.lo, second.hi, 0xDD))};
}

/// 16 f16 widened.
static inline V16f load_f16(const std::byte* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16)))};
}
static inline void store_f16(std::uint16_t* p, V16f x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.lo, kNearest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.hi, kNearest));
}
/// The low half of each lane.
static inline void store_low_halves(std::uint16_t* p, V16i x) {
  const auto pack = [](__m256i v) {
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xFFFF));
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    return _mm256_castsi256_si128(packed);
  };
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), pack(x.lo));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), pack(x.hi));
}

/// a * b + c, rounded once.
static inline float fused(float a, float b, float c) {
  return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}
static inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
static inline void prefetch(const std::byte* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }

}  // namespace octavo::avx2
