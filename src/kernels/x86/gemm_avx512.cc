// The linear contract on AVX-512 VNNI for int8 activations. A tile is R rows x one panel, one register a row.
//
// vpdpbusd multiplies four unsigned weights with four signed activations per lane and adds in 32 bits, so the sums are
// exact. A format's offset is taken off in integers: the accumulator starts at -offset * (sum of the activations).
#include "kernels/x86/gemm_avx512.h"

namespace octavo::avx512 {
namespace {

using Byte = std::uint8_t;
using F = WeightFormat;

constexpr bool is_k_quant(F f) { return f == F::kQ4_K || f == F::kQ5_K || f == F::kQ6_K; }
constexpr bool has_fifth_bit(F f) { return f == F::kQ5_0 || f == F::kQ5_1 || f == F::kQ5_K; }

/// Prepared rows from one row of a tile on, at one block of 32 inputs; the next block is kTileRows slots further.
struct Rows {
  const std::int8_t* q;
  const std::int16_t* sum8;
  const float* scale;
  const float* scaled_sum;

  OCTAVO_INLINE void next_block() {
    q += kTileRows * kCellInputs;
    sum8 += kTileRows * 4;
    scale += kTileRows;
    scaled_sum += kTileRows;
  }
};

OCTAVO_INLINE Rows rows_at(const ActRows& x, std::uint32_t row) {
  const std::size_t slot = std::size_t{row / kTileRows} * (x.k / kCellInputs) * kTileRows + row % kTileRows;
  return {x.q + slot * kCellInputs, x.sum8 + slot * 4, x.scale + slot, x.scaled_sum + slot};
}

OCTAVO_INLINE __m512i load(const Byte* p) { return _mm512_load_si512(p); }

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

/// Byte vector (v shifted left by kLeft bits) & mask; mask keeps what neighbours shift in out.
template <int kLeft>
OCTAVO_INLINE __m512i shift_mask(__m512i v, int mask) {
  if constexpr (kLeft > 0) v = _mm512_slli_epi16(v, kLeft);
  if constexpr (kLeft < 0) v = _mm512_srli_epi16(v, -kLeft);
  return _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(mask)));
}

/// Vector j of a cell as unsigned bytes.
template <F f, int j>
OCTAVO_INLINE __m512i weights(const Byte* cell) {
  if constexpr (f == F::kQ8_0) {
    return load(cell + 64 * j);
  } else {
    const __m512i low = shift_mask<-4 * (j / 4)>(load(cell + 64 * (j % 4)), 15);
    if constexpr (has_fifth_bit(f)) return _mm512_or_si512(low, shift_mask<4 - j>(load(cell + 256), 16));
    if constexpr (f == F::kQ6_K) {
      return _mm512_or_si512(low, shift_mask<4 - 2 * (j % 4)>(load(cell + 256 + 64 * (j / 4)), 48));
    }
    return low;
  }
}

/// acc + four vectors times 16 inputs.
OCTAVO_INLINE __m512i add_products(__m512i acc, const __m512i* w, const std::int8_t* q) {
  OCTAVO_UNROLL for (int j = 0; j < 4; ++j) acc = _mm512_dpbusd_epi32(acc, w[j], repeat32(q + 4 * j));
  return acc;
}

/// The integer of the contract for one row: isum, or Q6_K's sc0 * isum0 + sc1 * isum1.
template <F f>
OCTAVO_INLINE __m512i dot(const __m512i (&w)[8], const __m512i (&part_scale)[2], const std::int8_t* q,
                          const std::int16_t* sum8) {
  constexpr int kOffset = cell_layout(f).offset;
  __m512i first = _mm512_setzero_si512();
  if constexpr (kOffset != 0) first = add_sum(first, sum8, -kOffset);
  if constexpr (f == F::kQ6_K) {
    first = add_products(first, w, q);
    const __m512i second = add_products(add_sum(_mm512_setzero_si512(), sum8 + 2, -kOffset), w + 4, q + 16);
    return _mm512_add_epi32(_mm512_mullo_epi32(first, part_scale[0]), _mm512_mullo_epi32(second, part_scale[1]));
  } else {
    if constexpr (kOffset != 0) first = add_sum(first, sum8 + 2, -kOffset);
    return add_products(add_products(first, w, q), w + 4, q + 16);
  }
}

OCTAVO_INLINE __m512 f16_lanes(const Byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
OCTAVO_INLINE __m128i bytes_at(const Byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
OCTAVO_INLINE __m512 u8_lanes(const Byte* p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes_at(p))); }

/// One more cell of a group for R rows.
template <F f, int R>
OCTAVO_INLINE void add_cell(const Byte* group, std::uint32_t index, const Byte* cell, const Rows& x, __m512 (&acc)[R]) {
  constexpr CellLayout kLayout = cell_layout(f);
  const Byte* own = group + kLayout.header_bytes + index * kLayout.header_bytes_per_cell;
  __m512 scale = f16_lanes(is_k_quant(f) ? group : own);
  __m512 min = _mm512_setzero_ps();  // acc += min * scaled_sum
  __m512i part_scale[2];
  if constexpr (is_k_quant(f) && kLayout.has_min) {
    scale = _mm512_mul_ps(scale, u8_lanes(own));
    min = _mm512_mul_ps(_mm512_sub_ps(_mm512_setzero_ps(), f16_lanes(group + 32)), u8_lanes(own + 16));
  } else if constexpr (kLayout.has_min) {
    min = f16_lanes(own + 32);
  }
  if constexpr (f == F::kQ6_K) {
    part_scale[0] = _mm512_cvtepi8_epi32(bytes_at(own));
    part_scale[1] = _mm512_cvtepi8_epi32(bytes_at(own + 16));
  } else {
    part_scale[0] = part_scale[1] = _mm512_setzero_si512();
  }
  const __m512i w[8] = {weights<f, 0>(cell), weights<f, 1>(cell), weights<f, 2>(cell), weights<f, 3>(cell),
                        weights<f, 4>(cell), weights<f, 5>(cell), weights<f, 6>(cell), weights<f, 7>(cell)};
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    const __m512 isum = _mm512_cvtepi32_ps(dot<f>(w, part_scale, x.q + kCellInputs * r, x.sum8 + 4 * r));
    acc[r] = _mm512_fmadd_ps(isum, _mm512_mul_ps(scale, _mm512_set1_ps(x.scale[r])), acc[r]);
    if constexpr (kLayout.has_min) acc[r] = _mm512_fmadd_ps(min, _mm512_set1_ps(x.scaled_sum[r]), acc[r]);
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
        add_cell<f>(group, c, panel, x, acc);
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
    case F::kQ4_K: return gemm_block<F::kQ4_K>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ5_K: return gemm_block<F::kQ5_K>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ6_K: return gemm_block<F::kQ6_K>(x, w, bias, y, ldy, panel_begin, panel_end);
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
