#include <immintrin.h>

#include <cstdint>

#include "probe/bursts.h"

namespace octavo::avx2 {
namespace {

constexpr int kChains = 12;  // hides the latency, fits the 16 registers

void int8(std::uint64_t iterations) {
  __m256i sums[kChains];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  __m256i a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(5), ones = _mm256_set1_epi16(1);
  for (std::uint64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(a));  // a fresh operand, as far as the compiler knows
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  }
  for (__m256i& sum : sums) asm volatile("" : : "x"(sum));
}

void f32(std::uint64_t iterations) {
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  __m256 a = _mm256_set1_ps(1.5F);
  const __m256 b = _mm256_set1_ps(0.5F);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    asm volatile("" : "+x"(a));
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(a, b, sum);
  }
  for (__m256& sum : sums) asm volatile("" : : "x"(sum));
}

}  // namespace

std::uint64_t read_memory(const std::uint64_t* words, std::uint64_t bytes) {
  __m256i sums[8];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  const auto* vectors = reinterpret_cast<const __m256i*>(words);
  const std::uint64_t count = bytes / sizeof(__m256i);  // even
  std::uint64_t i = 0;
  for (; i + 8 <= count; i += 8) {
#pragma GCC unroll 8
    for (std::uint64_t j = 0; j < 8; ++j) sums[j] = _mm256_add_epi64(sums[j], _mm256_load_si256(vectors + i + j));
  }
  for (; i < count; ++i) sums[0] = _mm256_add_epi64(sums[0], _mm256_load_si256(vectors + i));
  for (int j = 1; j < 8; ++j) sums[0] = _mm256_add_epi64(sums[0], sums[j]);
  alignas(32) std::uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums[0]);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

const Burst kInt8{"AVX2 maddubs", kChains * 32 * 2, int8};
const Burst kF32{"AVX2 FMA", kChains * 8 * 2, f32};

}  // namespace octavo::avx2
