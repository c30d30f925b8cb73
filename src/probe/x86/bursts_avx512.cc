#include <immintrin.h>

#include <cstdint>

#include "probe/bursts.h"

namespace octavo::avx512 {
namespace {

constexpr int kChains = 16;

void int8(std::uint64_t iterations) {
  __m512i sums[kChains];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  __m512i a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(5);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    asm volatile("" : "+v"(a));  // a fresh operand, as far as the compiler knows
#pragma GCC unroll 16
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, b);
  }
  for (__m512i& sum : sums) asm volatile("" : : "v"(sum));
}

void f32(std::uint64_t iterations) {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  __m512 a = _mm512_set1_ps(1.5F);
  const __m512 b = _mm512_set1_ps(0.5F);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    asm volatile("" : "+v"(a));
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(a, b, sum);
  }
  for (__m512& sum : sums) asm volatile("" : : "v"(sum));
}

}  // namespace

std::uint64_t read_memory(const std::uint64_t* words, std::uint64_t bytes) {
  __m512i sums[8];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  const std::uint64_t count = bytes / sizeof(__m512i);
  std::uint64_t i = 0;
  for (; i + 8 <= count; i += 8) {
#pragma GCC unroll 8
    for (std::uint64_t j = 0; j < 8; ++j) {
      sums[j] = _mm512_add_epi64(sums[j], _mm512_load_si512(words + 8 * (i + j)));
    }
  }
  for (; i < count; ++i) sums[0] = _mm512_add_epi64(sums[0], _mm512_load_si512(words + 8 * i));
  for (int j = 1; j < 8; ++j) sums[0] = _mm512_add_epi64(sums[0], sums[j]);
  alignas(64) std::uint64_t lanes[8];
  _mm512_store_si512(lanes, sums[0]);
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : lanes) sum += lane;
  return sum;
}

const Burst kInt8{"AVX-512 VNNI", kChains * 64 * 2, int8};
const Burst kF32{"AVX-512 FMA", kChains * 16 * 2, f32};

}  // namespace octavo::avx512
