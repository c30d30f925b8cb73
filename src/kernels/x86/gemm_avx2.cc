// The linear contract on AVX2 for int8 activations. A tile is R rows x one panel, two registers of 8 lanes per row.
//
// vpmaddubsw multiplies unsigned weights with signed activations into 16-bit pair sums. They are added in 16 bits,
// which may wrap on the way but not at the end: the accumulator starts at -offset * (sum of the lane's activations), so
// it ends at a sum of centred weights times activations, and that fits. Bounds, with |activation| <= 127 and 16
// products a 16-bit lane: Q4 unsigned 15 * 127 * 16 = 30480, Q5 centred 16 * 127 * 16 = 32512, Q6 centred, 8 products a
// half, 32 * 127 * 8 = 32512, Q8_0 as two nibbles 30480. One vpmaddwd then adds the two 16-bit lanes of an output.
#include "kernels/x86/gemm_avx2.h"

namespace octavo::avx2 {
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

  void next_block() {
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

OCTAVO_INLINE __m256i load(const Byte* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }

/// 32 bits in every lane: four activations, or two sums.
OCTAVO_INLINE __m256i repeat32(const void* p) {
  std::int32_t word;
  std::memcpy(&word, p, 4);
  return _mm256_set1_epi32(word);
}

/// Sums of a row's 32 activations as the 16-bit lanes see them: k % 4 < 2, and k % 4 >= 2.
OCTAVO_INLINE __m256i lane_sums(const std::int16_t* sum8) {
  return _mm256_add_epi16(repeat32(sum8), repeat32(sum8 + 2));
}

template <int kLeft>
OCTAVO_INLINE __m256i shift16(__m256i v) {
  if constexpr (kLeft > 0) return _mm256_slli_epi16(v, kLeft);
  if constexpr (kLeft < 0) return _mm256_srli_epi16(v, -kLeft);
  return v;
}

OCTAVO_INLINE __m256i add_products(__m256i acc, __m256i weights, const std::int8_t* activations) {
  return _mm256_add_epi16(acc, _mm256_maddubs_epi16(weights, repeat32(activations)));
}

OCTAVO_INLINE __m256i sum_pairs(__m256i sums16) { return _mm256_madd_epi16(sums16, _mm256_set1_epi16(1)); }

/// Inputs 4j.. (low nibbles) and 16 + 4j.. (high) of four- and five-bit cells.
template <F f, int j, int R>
OCTAVO_INLINE void add_nibbles(const Byte* cell, const std::int8_t* q, __m256i (&acc)[R][2]) {
  const __m256i low_mask = _mm256_set1_epi8(15), bit_mask = _mm256_set1_epi8(16);
  __m256i low[2], high[2];
  OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
    const __m256i nibbles = load(cell + 64 * j + 32 * h);
    low[h] = _mm256_and_si256(nibbles, low_mask);
    high[h] = _mm256_and_si256(_mm256_srli_epi16(nibbles, 4), low_mask);
    if constexpr (has_fifth_bit(f)) {
      const __m256i bits = load(cell + 256 + 32 * h);
      low[h] = _mm256_or_si256(low[h], _mm256_and_si256(shift16<4 - j>(bits), bit_mask));
      high[h] = _mm256_or_si256(high[h], _mm256_and_si256(shift16<-j>(bits), bit_mask));
    }
  }
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
      acc[r][h] = add_products(acc[r][h], low[h], q + kCellInputs * r + 4 * j);
      acc[r][h] = add_products(acc[r][h], high[h], q + kCellInputs * r + 16 + 4 * j);
    }
  }
}

template <F f, int R>
OCTAVO_INLINE void dot_nibbles(const Byte* cell, const Rows& x, __m256i (&isum)[R][2]) {
  // Five-bit weights are always centred, to stay in 16 bits; for formats with a min that is taken back below.
  constexpr int kCentre = has_fifth_bit(f) ? 16 : cell_layout(f).offset;
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    isum[r][0] = kCentre == 0 ? _mm256_setzero_si256()
                              : _mm256_mullo_epi16(lane_sums(x.sum8 + 4 * r), _mm256_set1_epi16(-kCentre));
    isum[r][1] = isum[r][0];
  }
  add_nibbles<f, 0>(cell, x.q, isum);
  add_nibbles<f, 1>(cell, x.q, isum);
  add_nibbles<f, 2>(cell, x.q, isum);
  add_nibbles<f, 3>(cell, x.q, isum);
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) isum[r][h] = sum_pairs(isum[r][h]);
    if constexpr (kCentre != cell_layout(f).offset) {
      const __m256i back = _mm256_madd_epi16(lane_sums(x.sum8 + 4 * r), _mm256_set1_epi16(kCentre));
      OCTAVO_UNROLL for (int h = 0; h < 2; ++h) isum[r][h] = _mm256_add_epi32(isum[r][h], back);
    }
  }
}

/// Inputs 4j.. of half `part` (16 inputs) of a six-bit cell.
template <int part, int j, int R>
OCTAVO_INLINE void add_six_bits(const Byte* cell, const std::int8_t* q, __m256i (&acc)[R][2]) {
  __m256i weights[2];
  OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
    const __m256i low = _mm256_and_si256(shift16<-4 * part>(load(cell + 64 * j + 32 * h)), _mm256_set1_epi8(15));
    const __m256i pairs = load(cell + 256 + 64 * part + 32 * h);
    weights[h] = _mm256_or_si256(low, _mm256_and_si256(shift16<4 - 2 * j>(pairs), _mm256_set1_epi8(48)));
  }
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
      acc[r][h] = add_products(acc[r][h], weights[h], q + kCellInputs * r + 16 * part + 4 * j);
    }
  }
}

/// sc * isum of one half: the scale as two equal 16-bit lanes lets vpmaddwd multiply and add at once.
template <int part, int R>
OCTAVO_INLINE void dot_six_bits_half(const Byte* cell, const Byte* scales, const Rows& x, __m256i (&isum)[R][2]) {
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    isum[r][0] = _mm256_mullo_epi16(repeat32(x.sum8 + 4 * r + 2 * part), _mm256_set1_epi16(-32));
    isum[r][1] = isum[r][0];
  }
  add_six_bits<part, 0>(cell, x.q, isum);
  add_six_bits<part, 1>(cell, x.q, isum);
  add_six_bits<part, 2>(cell, x.q, isum);
  add_six_bits<part, 3>(cell, x.q, isum);
  OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
    const __m256i sc = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales + 8 * h)));
    const __m256i twice = _mm256_blend_epi16(sc, _mm256_slli_epi32(sc, 16), 0xAA);
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) isum[r][h] = _mm256_madd_epi16(isum[r][h], twice);
  }
}

template <int R>
OCTAVO_INLINE void dot_six_bits(const Byte* cell, const Byte* scales, const Rows& x, __m256i (&isum)[R][2]) {
  dot_six_bits_half<0>(cell, scales, x, isum);
  __m256i second[R][2];
  dot_six_bits_half<1>(cell, scales + 16, x, second);
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) isum[r][h] = _mm256_add_epi32(isum[r][h], second[r][h]);
  }
}

/// Bytes as two nibbles: w - 128 = 16 * (high - 8) + low; as bytes the products would saturate.
template <int R>
OCTAVO_INLINE void dot_bytes(const Byte* cell, const Rows& x, __m256i (&isum)[R][2]) {
  const __m256i low_mask = _mm256_set1_epi8(15);
  OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
    __m256i low[R], high[R];
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
      low[r] = _mm256_setzero_si256();
      high[r] = _mm256_mullo_epi16(lane_sums(x.sum8 + 4 * r), _mm256_set1_epi16(-8));
    }
    OCTAVO_UNROLL for (int j = 0; j < 8; ++j) {
      const __m256i bytes = load(cell + 64 * j + 32 * h);
      const __m256i w_low = _mm256_and_si256(bytes, low_mask);
      const __m256i w_high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_mask);
      OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
        low[r] = add_products(low[r], w_low, x.q + kCellInputs * r + 4 * j);
        high[r] = add_products(high[r], w_high, x.q + kCellInputs * r + 4 * j);
      }
    }
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
      isum[r][h] = _mm256_add_epi32(sum_pairs(low[r]), _mm256_madd_epi16(high[r], _mm256_set1_epi16(16)));
    }
  }
}

OCTAVO_INLINE __m256 f16_lanes(const Byte* p) {
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
}

OCTAVO_INLINE __m256 u8_lanes(const Byte* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}

/// A cell's float factors: acc = fma(isum, scale * x.scale, acc), then acc = fma(min, x.scaled_sum, acc).
struct Factors {
  __m256 scale[2], min[2];
};

template <F f>
OCTAVO_INLINE Factors factors_of(const Byte* group, std::uint32_t index) {
  constexpr CellLayout kLayout = cell_layout(f);
  const Byte* own = group + kLayout.header_bytes + index * kLayout.header_bytes_per_cell;
  Factors out;
  OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
    if constexpr (!is_k_quant(f)) {
      out.scale[h] = f16_lanes(own + 16 * h);
      if constexpr (kLayout.has_min) out.min[h] = f16_lanes(own + 32 + 16 * h);
    } else if constexpr (kLayout.has_min) {
      const __m256 minus_dmin = _mm256_xor_ps(f16_lanes(group + 32 + 16 * h), _mm256_set1_ps(-0.0F));
      out.scale[h] = _mm256_mul_ps(f16_lanes(group + 16 * h), u8_lanes(own + 8 * h));
      out.min[h] = _mm256_mul_ps(minus_dmin, u8_lanes(own + 16 + 8 * h));
    } else {
      out.scale[h] = f16_lanes(group + 16 * h);
    }
  }
  return out;
}

template <F f, int R>
OCTAVO_INLINE void add_cell(const Byte* group, std::uint32_t index, const Byte* cell, const Rows& x,
                            __m256 (&acc)[R][2]) {
  __m256i isum[R][2];
  if constexpr (f == F::kQ8_0) {
    dot_bytes(cell, x, isum);
  } else if constexpr (f == F::kQ6_K) {
    dot_six_bits(cell, group + 64 + 32 * index, x, isum);
  } else {
    dot_nibbles<f>(cell, x, isum);
  }
  const Factors w = factors_of<f>(group, index);
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    const __m256 scale = _mm256_set1_ps(x.scale[r]);
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
      acc[r][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum[r][h]), _mm256_mul_ps(w.scale[h], scale), acc[r][h]);
      if constexpr (cell_layout(f).has_min) {
        acc[r][h] = _mm256_fmadd_ps(w.min[h], _mm256_set1_ps(x.scaled_sum[r]), acc[r][h]);
      }
    }
  }
}

/// R rows of one tile times one panel.
template <F f, int R>
void tile(Rows x, std::uint32_t row, const Byte* panel, std::uint32_t num_cells, const Output& out) {
  constexpr CellLayout kLayout = cell_layout(f);
  __m256 acc[R][2];
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
  for (std::uint32_t first = 0; first < num_cells; first += kGroupCells) {
    const std::uint32_t cells = num_cells - first < kGroupCells ? num_cells - first : kGroupCells;
    const Byte* group = panel;
    panel += group_header_bytes(kLayout, cells);
    for (std::uint32_t c = 0; c < cells; ++c) {
      add_cell<f>(group, c, panel, x, acc);
      panel += kLayout.cell_bytes;
      x.next_block();
    }
  }
  store_rows(out, row, acc);
}

constexpr std::uint32_t kRows = 4;          // of a register tile
constexpr std::uint32_t kBlockedRows = 96;  // walked per panel, so that they stay in the second-level cache

template <F f>
void gemm_block(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
                std::uint32_t panel_begin, std::uint32_t panel_end) {
  const std::uint32_t num_cells = w.k / kCellInputs;
  for (std::uint32_t begin = 0; begin < x.m; begin += kBlockedRows) {
    const std::uint32_t end = x.m - begin < kBlockedRows ? x.m : begin + kBlockedRows;
    for (std::uint32_t p = panel_begin; p < panel_end; ++p) {
      const Byte* panel = reinterpret_cast<const Byte*>(w.panels) + p * w.panel_bytes;
      const Output out = output_of(p, w.n, bias, y, ldy);
      std::uint32_t row = begin;
      for (; row + kRows <= end; row += kRows) tile<f, kRows>(rows_at(x, row), row, panel, num_cells, out);
      switch (end - row) {
        case 3: tile<f, 3>(rows_at(x, row), row, panel, num_cells, out); break;
        case 2: tile<f, 2>(rows_at(x, row), row, panel, num_cells, out); break;
        case 1: tile<f, 1>(rows_at(x, row), row, panel, num_cells, out); break;
        default: break;
      }
    }
  }
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

}  // namespace octavo::avx2
