// The AVX-VNNI kernels on any x86-64 with AVX2: the one instruction they add is emulated, the rest is the shipped
// source.
#include <immintrin.h>

/// Even and odd bytes apart, widened to 16 bits, multiplied and added in 32.
static inline __m256i emulated_dpbusd(__m256i acc, __m256i unsigned_bytes, __m256i signed_bytes) {
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(unsigned_bytes, _mm256_set1_epi16(255)),
                                         _mm256_srai_epi16(_mm256_slli_epi16(signed_bytes, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(unsigned_bytes, 8), _mm256_srai_epi16(signed_bytes, 8));
  return _mm256_add_epi32(acc, _mm256_add_epi32(even, odd));
}
#undef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32(acc, a, b) emulated_dpbusd(acc, a, b)

#define avxvnni avxvnni_emulated
#include "kernels/entries.h"
#include "kernels/x86/gemm_avxvnni.cc"
