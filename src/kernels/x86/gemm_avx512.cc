// The linear contract on AVX-512 VNNI for int8 activations. A tile is R rows x one panel, one register a row.
//
// vpdpbusd multiplies four unsigned weights with four signed activations per lane and adds in 32 bits, so the sums are
// exact. A format's offset is taken off in integers: the accumulator starts at -offset * (sum of the activations).
#include "kernels/x86/gemm_avx512_cells.h"

namespace octavo::avx512 {
namespace {

/// 32 bits in every lane: four activations, or two sums.
OCTAVO_INLINE __m512i repeat32(const void* p) {
  std::int32_t word;
  std::memcpy(&word, p, 4);
  return _mm512_set1_epi32(word);
}

/// acc + factor * (sum of 16 activations), which is stored as two 16-bit parts.
OCTAVO_INLINE __m512i add_sum(__m512i acc, const std::int16_t* sum8, int factor) {
  return _mm512_dpwssd_epi32(acc, repeat32(sum8), _mm512_set1_epi16(static_cast<short>(factor)));
}

/// acc + four vectors times 16 inputs.
OCTAVO_INLINE __m512i add_products(__m512i acc, const __m512i* w, const std::int8_t* q) {
  OCTAVO_UNROLL for (int j = 0; j < 4; ++j) acc = _mm512_dpbusd_epi32(acc, w[j], repeat32(q + 4 * j));
  return acc;
}

/// The integer of the contract for one row: isum, or sc0 * isum0 + sc1 * isum1.
template <F f>
OCTAVO_INLINE __m512i dot(const __m512i (&w)[8], const __m512i (&part_scale)[2], const std::int8_t* q,
                          const std::int16_t* sum8) {
  constexpr int kOffset = cell_layout(f).offset;
  __m512i first = _mm512_setzero_si512();
  if constexpr (kOffset != 0) first = add_sum(first, sum8, -kOffset);
  if constexpr (cell_layout(f).in_halves()) {
    first = add_products(first, w, q);
    __m512i second = _mm512_setzero_si512();
    if constexpr (kOffset != 0) second = add_sum(second, sum8 + 2, -kOffset);
    second = add_products(second, w + 4, q + 16);
    return _mm512_add_epi32(_mm512_mullo_epi32(first, part_scale[0]), _mm512_mullo_epi32(second, part_scale[1]));
  } else {
    if constexpr (kOffset != 0) first = add_sum(first, sum8 + 2, -kOffset);
    return add_products(add_products(first, w, q), w + 4, q + 16);
  }
}

/// One more cell for R rows; `own` is its part of the group's header.
template <F f, int R>
OCTAVO_INLINE void add_cell(const Byte* group, const Byte* own, const Byte* cell, const Rows& x, __m512 (&acc)[R]) {
  constexpr CellLayout kLayout = cell_layout(f);
  const Factors factors = factors_of<f>(group, own);
  const __m512i w[8] = {weights<f, 0>(cell), weights<f, 1>(cell), weights<f, 2>(cell), weights<f, 3>(cell),
                        weights<f, 4>(cell), weights<f, 5>(cell), weights<f, 6>(cell), weights<f, 7>(cell)};
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    const std::int16_t* sum8 = x.sum8 + 4 * r;
    const __m512 isum = _mm512_cvtepi32_ps(dot<f>(w, factors.half_scale, x.q + kCellInputs * r, sum8));
    const __m512 scale = _mm512_set1_ps(x.scale[r]);
    acc[r] = _mm512_fmadd_ps(isum, _mm512_mul_ps(factors.scale, scale), acc[r]);
    if constexpr (kLayout.scales == Scales::kHalvesMin) {
      __m512i sum = _mm512_dpwssd_epi32(_mm512_setzero_si512(), repeat32(sum8), factors.half_min[0]);
      sum = _mm512_dpwssd_epi32(sum, repeat32(sum8 + 2), factors.half_min[1]);
      acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(factors.min, scale), acc[r]);
    } else if constexpr (kLayout.has_min()) {
      acc[r] = _mm512_fmadd_ps(factors.min, _mm512_set1_ps(x.scaled_sum[r]), acc[r]);
    }
  }
}

/// R rows of one tile times one panel.
template <F f>
struct BlockTile {
  const ActRows& acts;
  std::uint32_t num_cells;

  template <int R>
  void run(std::uint32_t row, const Byte* panel, const Output& out) const {
    constexpr CellLayout kLayout = cell_layout(f);
    Rows x = rows_at(acts, row);
    __m512 acc[R];
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r] = _mm512_setzero_ps();
    for (std::uint32_t first = 0; first < num_cells; first += kGroupCells) {
      const std::uint32_t cells = num_cells - first < kGroupCells ? num_cells - first : kGroupCells;
      const Byte* group = panel;
      panel += group_header_bytes(kLayout, cells);
      for (std::uint32_t c = 0; c < cells; ++c, panel += kLayout.cell_bytes, x.next_block()) {
        add_cell<f>(group, group + kLayout.header_bytes + c * kLayout.header_bytes_per_cell, panel, x, acc);
      }
    }
    store_rows(out, row, acc);
  }
};

template <F f>
void gemm_block(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
                std::uint32_t panel_begin, std::uint32_t panel_end) {
  for_each_tile(x, w, bias, y, ldy, panel_begin, panel_end, BlockTile<f>{x, w.k / kCellInputs});
}

}  // namespace

void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
          std::uint32_t panel_begin, std::uint32_t panel_end) {
  switch (w.format) {
    case F::kQ4_0: return gemm_block<F::kQ4_0>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ4_1: return gemm_block<F::kQ4_1>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ5_0: return gemm_block<F::kQ5_0>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ5_1: return gemm_block<F::kQ5_1>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ8_0: return gemm_block<F::kQ8_0>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ2_K: return gemm_block<F::kQ2_K>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ3_K: return gemm_block<F::kQ3_K>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ4_K: return gemm_block<F::kQ4_K>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ5_K: return gemm_block<F::kQ5_K>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ6_K: return gemm_block<F::kQ6_K>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kIQ4_NL: return gemm_block<F::kIQ4_NL>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kIQ4_XS: return gemm_block<F::kIQ4_XS>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kMXFP4: return gemm_block<F::kMXFP4>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kF32:
    case F::kF16:
    case F::kBF16: return gemm_float(x, w, bias, y, ldy, panel_begin, panel_end);
  }
}

/// A pass over the activations is short beside the matrices: AVX2 serves.
void prepare_rows(const float* x, std::uint64_t ldx, ActRows& out, std::uint32_t row_begin, std::uint32_t row_end) {
  avx2::prepare_rows(x, ldx, out, row_begin, row_end);
}

}  // namespace octavo::avx512
