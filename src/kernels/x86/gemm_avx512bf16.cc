// BF16 weights by vdpbf16ps, which adds the product of the high halves, then that of the low halves, each with one
// rounding. Given (k + 2, k) as (low, high) it runs two steps of the even chain of the tile-32 order, likewise the odd
// one. That is how the machines measured so far behave; `select` checks it here before it trusts it.
#include "kernels/x86/gemm_avx512.h"

namespace octavo::avx512bf16 {
namespace {

using avx512::for_each_tile;
using avx512::Output;
using avx512::store_rows;

OCTAVO_INLINE __m512bh repeat32(const Bf16* p) {
  std::int32_t word;
  std::memcpy(&word, p, 4);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(word));
}

struct Bf16DotTile {
  const Bf16* rows;
  std::uint64_t width;

  template <int R>
  void run(std::uint32_t row, const std::uint8_t* panel, const Output& out) const {
    const __mmask32 high_halves = 0xAAAAAAAA;
    __m512 acc[R];
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r] = _mm512_setzero_ps();
    const Bf16* x = rows + row * width;
    for (const Bf16* end = x + width; x < end;) {
      __m512 even[R], odd[R];
      OCTAVO_UNROLL for (int r = 0; r < R; ++r) even[r] = odd[r] = _mm512_setzero_ps();
      for (int i = 0; i < 8; ++i, x += 4, panel += 128) {
        const __m512i first = _mm512_load_si512(panel), second = _mm512_load_si512(panel + 64);
        const __m512i even_pairs = _mm512_mask_blend_epi16(high_halves, second, _mm512_slli_epi32(first, 16));
        const __m512i odd_pairs = _mm512_mask_blend_epi16(high_halves, _mm512_srli_epi32(second, 16), first);
        OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
          even[r] = _mm512_dpbf16_ps(even[r], reinterpret_cast<__m512bh>(even_pairs), repeat32(x + r * width));
          odd[r] = _mm512_dpbf16_ps(odd[r], reinterpret_cast<__m512bh>(odd_pairs), repeat32(x + r * width + 2));
        }
      }
      OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r] = _mm512_add_ps(acc[r], _mm512_add_ps(even[r], odd[r]));
    }
    store_rows(out, row, acc);
  }
};

}  // namespace

void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
          std::uint32_t panel_begin, std::uint32_t panel_end) {
  if (w.format != WeightFormat::kBF16) return avx512::gemm(x, w, bias, y, ldy, panel_begin, panel_end);
  for_each_tile(x, w, bias, y, ldy, panel_begin, panel_end, Bf16DotTile{x.bf16, (x.k + 31) / 32 * 32});
}

}  // namespace octavo::avx512bf16
