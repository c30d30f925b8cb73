// The AVX-512 linear kernels on any x86-64 with AVX2, see avx512_emulated.cc.
#include <cmath>

#include "unit/kernels/simde/avx512_shim.h"

/// vdpbf16ps as measured: the product of the high halves first, then that of the low halves, each rounded once.
static inline __m512 emulated_dot_bf16(__m512 acc, __m512i a, __m512i b) {
  float sums[16];
  std::uint32_t x[16], y[16];
  _mm512_storeu_ps(sums, acc);
  _mm512_storeu_si512(x, a);
  _mm512_storeu_si512(y, b);
  const auto number = [](std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  };
  for (int j = 0; j < 16; ++j) {
    sums[j] = std::fma(number(x[j] & 0xFFFF0000), number(y[j] & 0xFFFF0000), sums[j]);
    sums[j] = std::fma(number(x[j] << 16), number(y[j] << 16), sums[j]);
  }
  return _mm512_loadu_ps(sums);
}
#undef __m512bh
#undef _mm512_dpbf16_ps
#define __m512bh __m512i
#define _mm512_dpbf16_ps(acc, a, b) emulated_dot_bf16(acc, a, b)

#define amx amx_emulated
#include "unit/kernels/simde/amx_tiles_emulated.h"
//
#define avx512 avx512_emulated
#define avx512bf16 avx512bf16_emulated
#include "kernels/x86/gemm_avx512.cc"
//
#include "kernels/x86/gemm_amx.cc"
#include "kernels/x86/gemm_avx512bf16.cc"
#include "kernels/x86/gemm_float_avx512.cc"
