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

  OCTAVO_INLINE void skip_blocks(std::size_t count) {
    q += count * kTileRows * kCellInputs;
    sum8 += count * kTileRows * 4;
    scale += count * kTileRows;
    scaled_sum += count * kTileRows;
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
  acc = _mm256_add_epi16(acc, _mm256_maddubs_epi16(weights, repeat32(activations)));
  asm("" : "+x"(acc));  // one register: g++ would gather all products first, add them as a tree and spill most of them
  return acc;
}

OCTAVO_INLINE __m256i sum_pairs(__m256i sums16) { return _mm256_madd_epi16(sums16, _mm256_set1_epi16(1)); }

/// Weights of a cell as unsigned bytes, straight from the panel: for few rows.
template <F f>
struct PackedCell {
  const Byte* bytes;

  /// Vector j of the contract, lanes 8h and on. Q8_0 splits vector j in two: its low nibbles are 2j, its high 2j + 1.
  template <int j>
  OCTAVO_INLINE __m256i vector(int h) const {
    const __m256i low_mask = _mm256_set1_epi8(15);
    if constexpr (f == F::kQ8_0) {
      return _mm256_and_si256(shift16<-4 * (j % 2)>(load(bytes + 64 * (j / 2) + 32 * h)), low_mask);
    } else {
      const __m256i low = _mm256_and_si256(shift16<-4 * (j / 4)>(load(bytes + 64 * (j % 4) + 32 * h)), low_mask);
      if constexpr (has_fifth_bit(f)) {
        const __m256i bits = load(bytes + 256 + 32 * h);
        return _mm256_or_si256(low, _mm256_and_si256(shift16<4 - j>(bits), _mm256_set1_epi8(16)));
      } else if constexpr (f == F::kQ6_K) {
        const __m256i pairs = load(bytes + 256 + 64 * (j / 4) + 32 * h);
        return _mm256_or_si256(low, _mm256_and_si256(shift16<4 - 2 * (j % 4)>(pairs), _mm256_set1_epi8(48)));
      } else {
        return low;
      }
    }
  }
};

/// The same vectors, unpacked once and read by many rows.
struct UnpackedCell {
  const Byte* bytes;

  template <int j>
  OCTAVO_INLINE __m256i vector(int h) const {
    return load(bytes + 64 * j + 32 * h);
  }
};

/// acc += vector j times the inputs 4j.. of R rows.
template <int j, int R, class Cell>
OCTAVO_INLINE void add_vector(const Cell& cell, const std::int8_t* q, __m256i (&acc)[R][2]) {
  const __m256i w[2] = {cell.template vector<j>(0), cell.template vector<j>(1)};
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) acc[r][h] = add_products(acc[r][h], w[h], q + kCellInputs * r + 4 * j);
  }
}

template <F f, int R, class Cell>
OCTAVO_INLINE void dot_up_to_five_bits(const Cell& cell, const Rows& x, __m256i (&isum)[R][2]) {
  // Five-bit weights are always centred, to stay in 16 bits; for formats with a min that is taken back below.
  constexpr int kCentre = has_fifth_bit(f) ? 16 : cell_layout(f).offset;
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    isum[r][0] = kCentre == 0 ? _mm256_setzero_si256()
                              : _mm256_mullo_epi16(lane_sums(x.sum8 + 4 * r), _mm256_set1_epi16(-kCentre));
    isum[r][1] = isum[r][0];
  }
  add_vector<0>(cell, x.q, isum);  // pairs of vectors share their nibbles
  add_vector<4>(cell, x.q, isum);
  add_vector<1>(cell, x.q, isum);
  add_vector<5>(cell, x.q, isum);
  add_vector<2>(cell, x.q, isum);
  add_vector<6>(cell, x.q, isum);
  add_vector<3>(cell, x.q, isum);
  add_vector<7>(cell, x.q, isum);
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) isum[r][h] = sum_pairs(isum[r][h]);
    if constexpr (kCentre != cell_layout(f).offset) {
      const __m256i back = _mm256_madd_epi16(lane_sums(x.sum8 + 4 * r), _mm256_set1_epi16(kCentre));
      OCTAVO_UNROLL for (int h = 0; h < 2; ++h) isum[r][h] = _mm256_add_epi32(isum[r][h], back);
    }
  }
}

/// sc * isum of 16 inputs: the scale as two equal 16-bit lanes lets vpmaddwd multiply and add at once.
template <int part, int R, class Cell>
OCTAVO_INLINE void dot_six_bits_half(const Cell& cell, const Byte* scales, const Rows& x, __m256i (&isum)[R][2]) {
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    isum[r][0] = _mm256_mullo_epi16(repeat32(x.sum8 + 4 * r + 2 * part), _mm256_set1_epi16(-32));
    isum[r][1] = isum[r][0];
  }
  add_vector<4 * part>(cell, x.q, isum);
  add_vector<4 * part + 1>(cell, x.q, isum);
  add_vector<4 * part + 2>(cell, x.q, isum);
  add_vector<4 * part + 3>(cell, x.q, isum);
  OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
    const Byte* own = scales + 16 * part + 8 * h;
    const __m256i sc = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(own)));
    const __m256i twice = _mm256_blend_epi16(sc, _mm256_slli_epi32(sc, 16), 0xAA);
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) isum[r][h] = _mm256_madd_epi16(isum[r][h], twice);
  }
}

template <int R, class Cell>
OCTAVO_INLINE void dot_six_bits(const Cell& cell, const Byte* scales, const Rows& x, __m256i (&isum)[R][2]) {
  dot_six_bits_half<0>(cell, scales, x, isum);
  __m256i second[R][2];
  dot_six_bits_half<1>(cell, scales, x, second);
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) isum[r][h] = _mm256_add_epi32(isum[r][h], second[r][h]);
  }
}

template <int j, int R, class Cell>
OCTAVO_INLINE void add_byte_vector(const Cell& cell, int h, const std::int8_t* q, __m256i (&low)[R],
                                   __m256i (&high)[R]) {
  const __m256i w_low = cell.template vector<2 * j>(h), w_high = cell.template vector<2 * j + 1>(h);
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    low[r] = add_products(low[r], w_low, q + kCellInputs * r + 4 * j);
    high[r] = add_products(high[r], w_high, q + kCellInputs * r + 4 * j);
  }
}

/// Bytes as two nibbles: w - 128 = 16 * (high - 8) + low; as bytes the products would saturate.
template <int R, class Cell>
OCTAVO_INLINE void dot_bytes(const Cell& cell, const Rows& x, __m256i (&isum)[R][2]) {
  OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
    const std::int8_t* q = x.q;
    asm volatile("" : "+r"(q));  // or g++ would keep the first half's broadcasts for the second, on the stack
    __m256i low[R], high[R];
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
      low[r] = _mm256_setzero_si256();
      high[r] = _mm256_mullo_epi16(lane_sums(x.sum8 + 4 * r), _mm256_set1_epi16(-8));
    }
    add_byte_vector<0>(cell, h, q, low, high);
    add_byte_vector<1>(cell, h, q, low, high);
    add_byte_vector<2>(cell, h, q, low, high);
    add_byte_vector<3>(cell, h, q, low, high);
    add_byte_vector<4>(cell, h, q, low, high);
    add_byte_vector<5>(cell, h, q, low, high);
    add_byte_vector<6>(cell, h, q, low, high);
    add_byte_vector<7>(cell, h, q, low, high);
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

/// One more cell; `scales` are Q6_K's, of this cell.
template <F f, int R, class Cell>
OCTAVO_INLINE void add_cell(const Cell& cell, const Byte* scales, const Factors& w, const Rows& x,
                            __m256 (&acc)[R][2]) {
  __m256i isum[R][2];
  if constexpr (f == F::kQ8_0) {
    dot_bytes(cell, x, isum);
  } else if constexpr (f == F::kQ6_K) {
    dot_six_bits(cell, scales, x, isum);
  } else {
    dot_up_to_five_bits<f>(cell, x, isum);
  }
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

/// The groups of a panel, one after the other.
template <F f>
struct GroupWalk {
  const Byte* header;
  std::uint32_t first, num_cells;  // of the group; of the panel

  [[nodiscard]] OCTAVO_INLINE bool more() const { return first < num_cells; }
  [[nodiscard]] OCTAVO_INLINE std::uint32_t cells() const {
    return num_cells - first < kGroupCells ? num_cells - first : kGroupCells;
  }
  [[nodiscard]] OCTAVO_INLINE const Byte* cell(std::uint32_t c) const {
    return header + group_header_bytes(cell_layout(f), cells()) + c * cell_layout(f).cell_bytes;
  }
  [[nodiscard]] OCTAVO_INLINE const Byte* scales(std::uint32_t c) const { return header + 64 + 32 * c; }
  OCTAVO_INLINE void next() {
    header = cell(cells());
    first += kGroupCells;
  }
};

/// R rows of one tile times one panel, weights unpacked in registers.
template <F f, int R>
void few_rows(const ActRows& acts, std::uint32_t row, const Byte* panel, std::uint32_t num_cells, const Output& out) {
  Rows x = rows_at(acts, row);
  __m256 acc[R][2];
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
  for (GroupWalk<f> group{panel, 0, num_cells}; group.more(); group.next()) {
    const std::uint32_t cells = group.cells();
    const Byte* cell = group.cell(0);
    for (std::uint32_t c = 0; c < cells; ++c, cell += cell_layout(f).cell_bytes, x.skip_blocks(1)) {
      add_cell<f>(PackedCell<f>{cell}, group.scales(c), factors_of<f>(group.header, c), x, acc);
    }
  }
  store_rows(out, row, acc);
}

/// A group of cells in the first-level cache.
template <F f>
struct UnpackedGroup {
  static constexpr std::uint32_t kCellBytes = f == F::kQ8_0 ? 1024 : 512;
  alignas(64) Byte cells[kGroupCells][kCellBytes];
  Factors factors[kGroupCells];
};

template <int j, F f>
OCTAVO_INLINE void unpack_vectors(const PackedCell<f>& cell, Byte* out) {
  if constexpr (j * 64 < UnpackedGroup<f>::kCellBytes) {
    for (int h = 0; h < 2; ++h) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + 64 * j + 32 * h), cell.template vector<j>(h));
    }
    unpack_vectors<j + 1>(cell, out);
  }
}

/// R rows from `row` on, one group: acc goes through memory.
template <F f, int R>
void add_group(const GroupWalk<f>& group, const UnpackedGroup<f>& unpacked, const ActRows& acts, std::uint32_t row,
               __m256* sums) {
  Rows x = rows_at(acts, row);
  x.skip_blocks(group.first);
  __m256 acc[R][2];
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) { OCTAVO_UNROLL for (int h = 0; h < 2; ++h) acc[r][h] = sums[2 * r + h]; }
  const std::uint32_t cells = group.cells();
  for (std::uint32_t c = 0; c < cells; ++c, x.skip_blocks(1)) {
    add_cell<f>(UnpackedCell{unpacked.cells[c]}, group.scales(c), unpacked.factors[c], x, acc);
  }
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) { OCTAVO_UNROLL for (int h = 0; h < 2; ++h) sums[2 * r + h] = acc[r][h]; }
}

constexpr std::uint32_t kRows = 4;  // of a register tile
/// From here on unpacking once pays; four-bit weights unpack almost for free.
template <F f>
constexpr std::uint32_t kManyRows = cell_layout(f).cell_bytes == 256 ? 32 : 8;
constexpr std::uint32_t kRowBlock = 96;  // rows that share an unpacked group; their sums stay in the first-level cache

/// Rows [begin, end) times one panel, each group unpacked once.
template <F f>
void many_rows(const ActRows& x, std::uint32_t begin, std::uint32_t end, const Byte* panel, std::uint32_t num_cells,
               const Output& out) {
  UnpackedGroup<f> unpacked;
  __m256 sums[kRowBlock][2];
  for (auto& sum : sums) sum[0] = sum[1] = _mm256_setzero_ps();
  for (GroupWalk<f> group{panel, 0, num_cells}; group.more(); group.next()) {
    for (std::uint32_t c = 0; c < group.cells(); ++c) {
      unpack_vectors<0>(PackedCell<f>{group.cell(c)}, unpacked.cells[c]);
      unpacked.factors[c] = factors_of<f>(group.header, c);
    }
    std::uint32_t row = begin;
    for (; row + kRows <= end; row += kRows) add_group<f, kRows>(group, unpacked, x, row, sums[row - begin]);
    for (; row < end; ++row) add_group<f, 1>(group, unpacked, x, row, sums[row - begin]);
  }
  for (std::uint32_t row = begin; row < end; ++row) {
    const __m256 sum[1][2] = {{sums[row - begin][0], sums[row - begin][1]}};
    store_rows(out, row, sum);
  }
}

template <F f>
void gemm_block(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
                std::uint32_t panel_begin, std::uint32_t panel_end) {
  const std::uint32_t num_cells = w.k / kCellInputs;
  for (std::uint32_t begin = 0; begin < x.m; begin += kRowBlock) {
    const std::uint32_t end = x.m - begin < kRowBlock ? x.m : begin + kRowBlock;
    for (std::uint32_t p = panel_begin; p < panel_end; ++p) {
      const Byte* panel = reinterpret_cast<const Byte*>(w.panels) + p * w.panel_bytes;
      const Output out = output_of(p, w.n, bias, y, ldy);
      if (end - begin >= kManyRows<f>) {
        many_rows<f>(x, begin, end, panel, num_cells, out);
        continue;
      }
      std::uint32_t row = begin;
      for (; row + kRows <= end; row += kRows) few_rows<f, kRows>(x, row, panel, num_cells, out);
      switch (end - row) {
        case 3: few_rows<f, 3>(x, row, panel, num_cells, out); break;
        case 2: few_rows<f, 2>(x, row, panel, num_cells, out); break;
        case 1: few_rows<f, 1>(x, row, panel, num_cells, out); break;
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
