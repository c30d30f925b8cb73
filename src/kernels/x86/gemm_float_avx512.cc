// The linear contract on AVX-512 for BF16 (by FMA), F16 and F32 weights: R rows x one panel.
#include "kernels/x86/gemm_avx512.h"

namespace octavo::avx512 {
namespace {

using Byte = std::uint8_t;

OCTAVO_INLINE __m512 high_half(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
}
OCTAVO_INLINE __m512 low_half(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }

OCTAVO_INLINE __m512i repeat32(const Bf16* p) {
  std::int32_t word;
  std::memcpy(&word, p, 4);
  return _mm512_set1_epi32(word);
}

/// Two even and two odd FMA steps per four inputs; the activation word of a chain holds its later input low.
struct Bf16Tile {
  const Bf16* rows;
  std::uint64_t width;

  template <int R>
  void run(std::uint32_t row, const Byte* panel, const Output& out) const {
    __m512 acc[R];
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r] = _mm512_setzero_ps();
    const Bf16* x = rows + row * width;
    for (const Bf16* end = x + width; x < end;) {
      __m512 even[R], odd[R];
      OCTAVO_UNROLL for (int r = 0; r < R; ++r) even[r] = odd[r] = _mm512_setzero_ps();
      for (int i = 0; i < 8; ++i, x += 4, panel += 128) {
        const __m512i first = _mm512_load_si512(panel), second = _mm512_load_si512(panel + 64);
        OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
          const __m512i even_word = repeat32(x + r * width), odd_word = repeat32(x + r * width + 2);
          even[r] = _mm512_fmadd_ps(low_half(first), high_half(even_word), even[r]);
          odd[r] = _mm512_fmadd_ps(high_half(first), high_half(odd_word), odd[r]);
          even[r] = _mm512_fmadd_ps(low_half(second), low_half(even_word), even[r]);
          odd[r] = _mm512_fmadd_ps(high_half(second), low_half(odd_word), odd[r]);
        }
      }
      OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r] = _mm512_add_ps(acc[r], _mm512_add_ps(even[r], odd[r]));
    }
    store_rows(out, row, acc);
  }
};

template <WeightFormat f>
struct FloatTile {
  const float* rows;
  std::uint64_t k;

  template <int R>
  void run(std::uint32_t row, const Byte* panel, const Output& out) const {
    __m512 acc[R];
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r] = _mm512_setzero_ps();
    const float* x = rows + row * k;
    for (std::uint64_t i = 0; i < k; ++i) {
      __m512 w;
      if constexpr (f == WeightFormat::kF32) {
        w = _mm512_load_ps(reinterpret_cast<const float*>(panel + 64 * i));
      } else {
        w = _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(panel + 32 * i)));
      }
      OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[r * k + i]), acc[r]);
    }
    store_rows(out, row, acc);
  }
};

}  // namespace

void gemm_float(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
                std::uint32_t panel_begin, std::uint32_t panel_end) {
  switch (w.format) {
    case WeightFormat::kBF16: {
      const Bf16Tile tile{x.bf16, (x.k + 31) / 32 * 32};
      return for_each_tile(x, w, bias, y, ldy, panel_begin, panel_end, tile);
    }
    case WeightFormat::kF16:
      return for_each_tile(x, w, bias, y, ldy, panel_begin, panel_end, FloatTile<WeightFormat::kF16>{x.f32, x.k});
    default:
      return for_each_tile(x, w, bias, y, ldy, panel_begin, panel_end, FloatTile<WeightFormat::kF32>{x.f32, x.k});
  }
}

}  // namespace octavo::avx512
