// The linear contract on AVX2 for BF16, F16 and F32 weights: R rows x one panel.
#include "kernels/x86/gemm_avx2.h"

namespace octavo::avx2 {
namespace {

using Byte = std::uint8_t;

OCTAVO_INLINE __m256 high_half(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xFFFF0000))));
}
OCTAVO_INLINE __m256 low_half(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }

OCTAVO_INLINE __m256i repeat32(const Bf16* p) {
  std::int32_t word;
  std::memcpy(&word, p, 4);
  return _mm256_set1_epi32(word);
}

/// Inputs k..k+3 of the even (chain 0) or odd (chain 1) chain. `pairs` holds the inputs (k, k+1), then (k+2, k+3);
/// the activation word of the chain holds its later input in the low half.
template <int chain, int R>
OCTAVO_INLINE void add_chain(const __m256i (&pairs)[2][2], const Bf16* x, std::uint64_t ldx, __m256 (&acc)[R][2]) {
  __m256 w[2][2];
  OCTAVO_UNROLL for (int i = 0; i < 2; ++i) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) w[i][h] = chain == 0 ? low_half(pairs[i][h]) : high_half(pairs[i][h]);
  }
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    const __m256i word = repeat32(x + r * ldx + 2 * chain);
    const __m256 first = high_half(word), second = low_half(word);
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
      acc[r][h] = _mm256_fmadd_ps(w[0][h], first, acc[r][h]);
      acc[r][h] = _mm256_fmadd_ps(w[1][h], second, acc[r][h]);
    }
  }
}

template <int R>
void tile_bf16(const Bf16* x, std::uint64_t ldx, std::uint32_t row, const Byte* panel, const Output& out) {
  __m256 acc[R][2];
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
  x += row * ldx;
  for (const Bf16* end = x + ldx; x < end;) {
    __m256 even[R][2], odd[R][2];
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
      OCTAVO_UNROLL for (int h = 0; h < 2; ++h) even[r][h] = odd[r][h] = _mm256_setzero_ps();
    }
    for (int i = 0; i < 8; ++i, x += 4, panel += 128) {
      __m256i pairs[2][2];
      OCTAVO_UNROLL for (int v = 0; v < 4; ++v) {
        pairs[v / 2][v % 2] = _mm256_load_si256(reinterpret_cast<const __m256i*>(panel + 32 * v));
      }
      add_chain<0>(pairs, x, ldx, even);
      add_chain<1>(pairs, x, ldx, odd);
    }
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
      OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
        acc[r][h] = _mm256_add_ps(acc[r][h], _mm256_add_ps(even[r][h], odd[r][h]));
      }
    }
  }
  store_rows(out, row, acc);
}

OCTAVO_INLINE __m256 lanes(const Byte* p, WeightFormat format) {
  if (format == WeightFormat::kF32) return _mm256_load_ps(reinterpret_cast<const float*>(p));
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
}

template <WeightFormat f, int R>
void tile_f32(const float* x, std::uint32_t k, std::uint32_t row, const Byte* panel, const Output& out) {
  constexpr std::uint32_t kHalf = f == WeightFormat::kF32 ? 32 : 16;  // bytes of 8 lanes
  __m256 acc[R][2];
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
  x += std::size_t{row} * k;
  for (std::uint32_t i = 0; i < k; ++i, panel += 2 * kHalf) {
    const __m256 w[2] = {lanes(panel, f), lanes(panel + kHalf, f)};
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
      const __m256 a = _mm256_set1_ps(x[std::size_t{k} * r + i]);
      OCTAVO_UNROLL for (int h = 0; h < 2; ++h) acc[r][h] = _mm256_fmadd_ps(w[h], a, acc[r][h]);
    }
  }
  store_rows(out, row, acc);
}

template <WeightFormat f, int R>
void tile(const ActRows& x, std::uint32_t row, const Byte* panel, const Output& out) {
  if constexpr (f == WeightFormat::kBF16) {
    tile_bf16<R>(x.bf16, (x.k + 31) / 32 * 32, row, panel, out);
  } else {
    tile_f32<f, R>(x.f32, x.k, row, panel, out);
  }
}

template <WeightFormat f>
void gemm_of(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
             std::uint32_t panel_begin, std::uint32_t panel_end) {
  constexpr std::uint32_t kRows = f == WeightFormat::kBF16 ? 3 : 4;  // BF16 has two chains a row
  constexpr std::uint32_t kBlockedRows = 48;
  for (std::uint32_t begin = 0; begin < x.m; begin += kBlockedRows) {
    const std::uint32_t end = x.m - begin < kBlockedRows ? x.m : begin + kBlockedRows;
    for (std::uint32_t p = panel_begin; p < panel_end; ++p) {
      const Byte* panel = reinterpret_cast<const Byte*>(w.panels) + p * w.panel_bytes;
      const Output out = output_of(p, w.n, bias, y, ldy);
      std::uint32_t row = begin;
      for (; row + kRows <= end; row += kRows) tile<f, kRows>(x, row, panel, out);
      switch (end - row) {
        case 3: tile<f, 3>(x, row, panel, out); break;
        case 2: tile<f, 2>(x, row, panel, out); break;
        case 1: tile<f, 1>(x, row, panel, out); break;
        default: break;
      }
    }
  }
}

}  // namespace

void gemm_float(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
                std::uint32_t panel_begin, std::uint32_t panel_end) {
  switch (w.format) {
    case WeightFormat::kBF16: return gemm_of<WeightFormat::kBF16>(x, w, bias, y, ldy, panel_begin, panel_end);
    case WeightFormat::kF16: return gemm_of<WeightFormat::kF16>(x, w, bias, y, ldy, panel_begin, panel_end);
    default: return gemm_of<WeightFormat::kF32>(x, w, bias, y, ldy, panel_begin, panel_end);
  }
}

}  // namespace octavo::avx2
