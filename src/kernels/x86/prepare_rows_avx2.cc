// Activation rows on AVX2; the AVX-512 tables use it too.
#include <immintrin.h>

#include "kernels/entries.h"
#include "kernels/gemm.h"

namespace octavo::avx2 {
namespace {

float scalar(__m128i bits) { return _mm_cvtss_f32(_mm_castsi128_ps(bits)); }

/// The integer maximum of |x|'s bits over 32 inputs, in the lowest lane.
__m128i max_bits(const __m256 (&x)[4]) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i max = _mm256_setzero_si256();
  for (const __m256& v : x) max = _mm256_max_epi32(max, _mm256_and_si256(_mm256_castps_si256(v), magnitude));
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
  return _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1));
}

/// Sums over 8 inputs, k % 4 < 2 and k % 4 >= 2 of each 16, as four 16-bit lanes.
__m128i sums_of(__m256i q) {
  __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);        // inputs (2i, 2i + 1)
  pairs = _mm256_add_epi16(pairs, _mm256_shuffle_epi32(pairs, 0x4E));  // + 8 inputs on
  pairs = _mm256_add_epi16(pairs, _mm256_shuffle_epi32(pairs, 0xB1));  // + 4 inputs on
  return _mm_unpacklo_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}

void quantise_block(const float* x, ActRows& out, std::size_t slot) {
  constexpr int kNotFinite = 0x7F800000;
  const __m256 in[4] = {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), _mm256_loadu_ps(x + 16), _mm256_loadu_ps(x + 24)};
  const __m128i bits = max_bits(in);
  const float amax = scalar(bits);
  const bool finite = _mm_cvtsi128_si32(bits) < kNotFinite;
  float scale = 0;
  __m256i q = _mm256_setzero_si256();
  if (!finite) {
    scale = scalar(_mm_set1_epi32(0x7FC00000));
  } else if (amax >= 0x1p-100F) {
    scale = amax / 127;
    const __m256 inverse = _mm256_set1_ps(127 / amax);
    __m256i n[4];
    for (int i = 0; i < 4; ++i) n[i] = _mm256_cvtps_epi32(_mm256_mul_ps(in[i], inverse));
    q = _mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3]));
    q = _mm256_permutevar8x32_epi32(q, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.q + slot * kCellInputs), q);
  const __m128i sums = sums_of(q);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out.sum8 + slot * 4), sums);
  const __m128i two = _mm_madd_epi16(sums, _mm_set1_epi16(1));
  const int sum = _mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1);
  out.scale[slot] = scale;
  out.scaled_sum[slot] = scale * static_cast<float>(sum);
}

/// Eight floats to bf16 in the low halves: nearest even, denormals to signed zero, NaN quieted.
__m256i bf16_of(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
  const __m256i denormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), magnitude);
  const __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F800000));
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x8000));
  const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
  return _mm256_blendv_epi8(_mm256_blendv_epi8(rounded, sign, denormal), quiet, nan);
}

/// 16 inputs; in every four the order becomes 2, 0, 3, 1.
void store_bf16(const float* x, Bf16* out) {
  const __m256i order = _mm256_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11,  //
                                         4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11);
  const __m256i packed = _mm256_packus_epi32(bf16_of(_mm256_loadu_ps(x)), bf16_of(_mm256_loadu_ps(x + 8)));
  const __m256i straight = _mm256_permute4x64_epi64(packed, 0xD8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_shuffle_epi8(straight, order));
}

void round_row(const float* x, std::uint32_t k, Bf16* out) {
  std::uint32_t i = 0;
  for (; i + 16 <= k; i += 16) store_bf16(x + i, out + i);
  for (; i < (k + 31) / 32 * 32; i += 16) {  // the tail, and zeros
    float padded[16] = {};
    for (std::uint32_t j = 0; i + j < k && j < 16; ++j) padded[j] = x[i + j];
    store_bf16(padded, out + i);
  }
}

}  // namespace

void prepare_rows(const float* x, std::uint64_t ldx, ActRows& out, std::uint32_t row_begin, std::uint32_t row_end) {
  const std::uint32_t blocks = out.k / kCellInputs;
  for (std::uint32_t row = row_begin; row < row_end; ++row) {
    const float* in = x + row * ldx;
    switch (out.kind) {
      case ActKind::kInt8: {
        const std::size_t slot = std::size_t{row / kTileRows} * blocks * kTileRows + row % kTileRows;
        for (std::uint32_t b = 0; b < blocks; ++b) {
          quantise_block(in + std::size_t{b} * kCellInputs, out, slot + std::size_t{b} * kTileRows);
        }
        break;
      }
      case ActKind::kBF16: round_row(in, out.k, out.bf16 + std::size_t{row} * ((out.k + 31) / 32 * 32)); break;
      case ActKind::kF32: __builtin_memcpy(out.f32 + std::size_t{row} * out.k, in, std::size_t{out.k} * 4); break;
    }
  }
}

}  // namespace octavo::avx2
