#include <immintrin.h>

#include <cstdint>

#include "probe/bursts.h"

namespace octavo::avx512bf16 {
namespace {

constexpr int kChains = 16;

void bf16(std::uint64_t iterations) {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  __m512 a = _mm512_set1_ps(1.5F);
  const __m512 b = _mm512_set1_ps(0.5F);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    asm volatile("" : "+v"(a));  // a fresh operand, as far as the compiler knows
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  for (__m512& sum : sums) asm volatile("" : : "v"(sum));
}

}  // namespace

const Burst kBf16{"AVX-512 BF16", kChains * 32 * 2, bf16};

}  // namespace octavo::avx512bf16
