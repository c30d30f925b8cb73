// Sixteen lanes as one 512-bit register: the same names and bits as v16_avx2.h, which says what they mean.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define OCTAVO_ISA avx512

namespace octavo::avx512 {

/// Query rows whose sums, an even and an odd one each in bf16, stay in the 32 registers.
inline constexpr std::uint32_t kRegisterRows = 12;
inline constexpr std::uint32_t kQueryTileRows = 16;

struct V16f {
  __m512 v;
};
struct V16i {
  __m512i v;
};
struct M16 {
  __mmask16 v;
};

static inline V16f zero() { return {_mm512_setzero_ps()}; }
static inline V16f broadcast(float x) { return {_mm512_set1_ps(x)}; }
static inline V16f load(const float* p) { return {_mm512_loadu_ps(p)}; }
static inline void store(float* p, V16f x) { _mm512_storeu_ps(p, x.v); }

static inline V16f add(V16f a, V16f b) { return {_mm512_add_ps(a.v, b.v)}; }
static inline V16f sub(V16f a, V16f b) { return {_mm512_sub_ps(a.v, b.v)}; }
static inline V16f mul(V16f a, V16f b) { return {_mm512_mul_ps(a.v, b.v)}; }
static inline V16f div(V16f a, V16f b) { return {_mm512_div_ps(a.v, b.v)}; }
static inline V16f fma(V16f a, V16f b, V16f c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
static inline V16f fms(V16f a, V16f b, V16f c) { return {_mm512_fmsub_ps(a.v, b.v, c.v)}; }
static inline V16f max(V16f a, V16f b) { return {_mm512_max_ps(a.v, b.v)}; }
static inline V16f min(V16f a, V16f b) { return {_mm512_min_ps(a.v, b.v)}; }

static inline V16i bits(V16f x) { return {_mm512_castps_si512(x.v)}; }
static inline V16f from_bits(V16i x) { return {_mm512_castsi512_ps(x.v)}; }
static inline V16i broadcast_int(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
static inline V16i add(V16i a, V16i b) { return {_mm512_add_epi32(a.v, b.v)}; }
static inline V16i bit_and(V16i a, V16i b) { return {_mm512_and_si512(a.v, b.v)}; }
static inline V16i bit_or(V16i a, V16i b) { return {_mm512_or_si512(a.v, b.v)}; }
static inline V16i bit_xor(V16i a, V16i b) { return {_mm512_xor_si512(a.v, b.v)}; }
template <int n>
static inline V16i shift_left(V16i x) {
  return {_mm512_slli_epi32(x.v, n)};
}
template <int n>
static inline V16i shift_right(V16i x) {
  return {_mm512_srli_epi32(x.v, n)};
}

static inline M16 less(V16f a, V16f b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
static inline M16 equal(V16f a, V16f b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
static inline M16 not_less_equal(V16f a, V16f b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NLE_UQ)}; }
static inline M16 equal(V16i a, V16i b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
static inline M16 lanes_between(std::int32_t begin, std::int32_t end) {
  const __m512i j = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __mmask16 from = _mm512_cmpgt_epi32_mask(j, _mm512_set1_epi32(begin - 1));
  const __mmask16 until = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(end), j);
  return {static_cast<__mmask16>(from & until)};
}
static inline V16f select(M16 mask, V16f a, V16f b) { return {_mm512_mask_blend_ps(mask.v, b.v, a.v)}; }
static inline V16f keep(M16 mask, V16f a) { return {_mm512_maskz_mov_ps(mask.v, a.v)}; }
static inline V16f clear(M16 mask, V16f a) { return {_mm512_mask_mov_ps(a.v, mask.v, _mm512_setzero_ps())}; }
static inline std::uint32_t mask_bits(M16 mask) { return mask.v; }

static inline __mmask16 first_lanes(std::uint32_t count) { return static_cast<__mmask16>((1U << count) - 1U); }
static inline V16f load_first(const float* p, std::uint32_t count) {
  return {_mm512_maskz_loadu_ps(first_lanes(count), p)};
}
static inline void store_first(float* p, V16f x, std::uint32_t count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), x.v);
}

/// The upper eight lanes.
static inline __m256 upper(__m512 x) { return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)); }
static inline float sum(V16f x) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x.v), upper(x.v));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
static inline float largest(V16f x) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x.v), upper(x.v));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

static inline void split_pairs(V16f first, V16f second, V16f& even, V16f& odd) {
  const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  even = {_mm512_permutex2var_ps(first.v, evens, second.v)};
  odd = {_mm512_permutex2var_ps(first.v, odds, second.v)};
}

static inline V16f load_f16(const std::byte* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
static inline void store_f16(std::uint16_t* p, V16f x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline void store_low_halves(std::uint16_t* p, V16i x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(x.v));
}

/// a * b + c, rounded once.
static inline float fused(float a, float b, float c) {
  return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}
static inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
static inline void prefetch(const std::byte* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }

}  // namespace octavo::avx512
