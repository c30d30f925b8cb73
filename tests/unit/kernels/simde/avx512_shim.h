// The AVX-512 intrinsics by SIMDe, which turns them into AVX2 or plain C. Include before any kernel source.
#pragma once
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

#include <cstdint>
#include <cstring>

// What SIMDe 0.7 lacks.
static inline __m512 emulated_maskz_loadu(__mmask16 mask, const float* p) {
  float lanes[16] = {};
  for (int j = 0; j < 16; ++j) {
    if ((mask >> j & 1) != 0) lanes[j] = p[j];
  }
  return _mm512_loadu_ps(lanes);
}
static inline void emulated_mask_storeu(float* p, __mmask16 mask, __m512 x) {
  float lanes[16];
  _mm512_storeu_ps(lanes, x);
  for (int j = 0; j < 16; ++j) {
    if ((mask >> j & 1) != 0) p[j] = lanes[j];
  }
}
static inline __m256i emulated_low_halves(__m512i x) {
  std::uint32_t lanes[16];
  std::uint16_t halves[16];
  _mm512_storeu_si512(lanes, x);
  for (int j = 0; j < 16; ++j) halves[j] = static_cast<std::uint16_t>(lanes[j]);
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves));
}
static inline __m512 emulated_from_half(__m256i x) {
  float lanes[16];
  _mm256_storeu_ps(lanes, _mm256_cvtph_ps(_mm256_castsi256_si128(x)));
  _mm256_storeu_ps(lanes + 8, _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)));
  return _mm512_loadu_ps(lanes);
}
static inline __m256i emulated_to_half(__m512 x) {
  float lanes[16];
  _mm512_storeu_ps(lanes, x);
  return _mm256_set_m128i(_mm256_cvtps_ph(_mm256_loadu_ps(lanes + 8), _MM_FROUND_TO_NEAREST_INT),
                          _mm256_cvtps_ph(_mm256_loadu_ps(lanes), _MM_FROUND_TO_NEAREST_INT));
}
template <class Byte>
static inline __m512i emulated_widen_bytes(__m128i x) {
  Byte bytes[16];
  std::int32_t lanes[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes), x);
  for (int j = 0; j < 16; ++j) lanes[j] = bytes[j];
  return _mm512_loadu_si512(lanes);
}
static inline __m512 emulated_to_float(__m512i x) {
  std::int32_t integers[16];
  float lanes[16];
  _mm512_storeu_si512(integers, x);
  for (int j = 0; j < 16; ++j) lanes[j] = static_cast<float>(integers[j]);
  return _mm512_loadu_ps(lanes);
}
#define _mm512_cvtepi32_ps(x) emulated_to_float(x)
#define _mm512_cvtepu8_epi32(x) emulated_widen_bytes<std::uint8_t>(x)
#define _mm512_cvtepi8_epi32(x) emulated_widen_bytes<std::int8_t>(x)
#define _mm512_maskz_loadu_ps(mask, p) emulated_maskz_loadu(mask, p)
#define _mm512_mask_storeu_ps(p, mask, x) emulated_mask_storeu(p, mask, x)
#define _mm512_cvtepi32_epi16(x) emulated_low_halves(x)
#define _mm512_cvtph_ps(x) emulated_from_half(x)
#undef _mm512_cvtps_ph  // a macro in unoptimised builds
#define _mm512_cvtps_ph(x, rounding) emulated_to_half(x)
