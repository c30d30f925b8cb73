// What AVX2 and AVX-VNNI share of the linear contract for int8 activations: cells, scales, and the walk over rows,
// groups and panels. A tile is R rows x one panel, two registers of 8 lanes per row. How a cell is multiplied is a
// core's:
//   kFormat, kVectors                             of its cells, and how many 64-byte vectors they are unpacked to
//   vector<j>(cell, h)                            vector j, lanes 8h and on, from the packed cell
//   dot<R>(unpacked or packed cell, its scales, rows, isum)   the integer of the contract that `scale` multiplies
#pragma once
#include "kernels/x86/gemm_avx2.h"
#include "tensor/quant_blocks.h"

namespace octavo::avx2 {
namespace {

using Byte = std::uint8_t;
using F = WeightFormat;

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

/// A byte for each nibble, twice: vpshufb looks up 16 in each half of a register.
struct ByteTable {
  alignas(16) Byte bytes[16];

  OCTAVO_INLINE __m256i look_up(__m256i nibbles) const {
    const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), nibbles);
  }
};

/// (value + offset) >> shift & mask.
constexpr ByteTable table_of(const std::int8_t (&values)[16], int offset, int shift = 0, int mask = 255) {
  ByteTable table{};
  for (int i = 0; i < 16; ++i) table.bytes[i] = static_cast<Byte>((values[i] + offset) >> shift & mask);
  return table;
}

template <int j>
OCTAVO_INLINE __m256i nibbles(const Byte* p) {
  return _mm256_and_si256(shift16<-4 * (j / 4)>(load(p + 64 * (j % 4))), _mm256_set1_epi8(15));
}

/// Vector j's bit, at `place`; what neighbours shift in lies outside the mask.
template <int j, int place>
OCTAVO_INLINE __m256i bits(const Byte* p) {
  return _mm256_and_si256(shift16<place - j>(load(p)), _mm256_set1_epi8(1 << place));
}

template <int j, int place>
OCTAVO_INLINE __m256i bit_pairs(const Byte* p) {
  return _mm256_and_si256(shift16<place - 2 * (j % 4)>(load(p + 64 * (j / 4))), _mm256_set1_epi8(3 << place));
}

/// Vector j of the contract, lanes 8h and on.
template <F f, int j>
OCTAVO_INLINE __m256i weights(const Byte* cell, int h) {
  constexpr CellLayout kLayout = cell_layout(f);
  const Byte* p = cell + 32 * h;
  switch (kLayout.codes) {
    case Codes::kNibbles: break;
    case Codes::kNibblesBit: return _mm256_or_si256(nibbles<j>(p), bits<j, 4>(p + 256));
    case Codes::kNibblesPairs: return _mm256_or_si256(nibbles<j>(p), bit_pairs<j, 4>(p + 256));
    case Codes::kBytes: return load(p + 64 * j);
    case Codes::kIq4Nibbles: {
      static constexpr ByteTable kTable = table_of(kIq4Values, kLayout.offset);
      return kTable.look_up(nibbles<j>(p));
    }
    case Codes::kFp4Nibbles: {
      static constexpr ByteTable kTable = table_of(kFp4Values, kLayout.offset);
      return kTable.look_up(nibbles<j>(p));
    }
    case Codes::kPairs: return bit_pairs<j, 0>(p);
    case Codes::kPairsBit: return _mm256_or_si256(bit_pairs<j, 0>(p), bits<j, 2>(p + 128));
  }
  return nibbles<j>(p);
}

/// A cell as it lies in the panel: for few rows.
template <class Core>
struct PackedCell {
  const Byte* bytes;

  template <int j>
  OCTAVO_INLINE __m256i vector(int h) const {
    return Core::template vector<j>(bytes, h);
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

OCTAVO_INLINE __m256 f16_lanes(const Byte* p) {
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
}
OCTAVO_INLINE __m128i eight_bytes(const Byte* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
OCTAVO_INLINE __m256i u8_lanes(const Byte* p) { return _mm256_cvtepu8_epi32(eight_bytes(p)); }
OCTAVO_INLINE __m256i i8_lanes(const Byte* p) { return _mm256_cvtepi8_epi32(eight_bytes(p)); }

/// 2^(e - 128), or 0 instead of a denormal.
OCTAVO_INLINE __m256 e8m0_lanes(const Byte* p) {
  const __m128i exponent = _mm_subs_epu8(eight_bytes(p), _mm_set1_epi8(1));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(exponent), 23));
}

/// A cell's integer scale of 16 inputs.
template <F f>
OCTAVO_INLINE __m256i half_scale(const Byte* scales, int part, int h) {
  const Byte* own = scales + 16 * part + 8 * h;
  if constexpr (cell_layout(f).scales == Scales::kHalves) return i8_lanes(own);
  return _mm256_and_si256(u8_lanes(own), _mm256_set1_epi32(15));
}

/// Both 16-bit halves of each lane: then vpmaddwd multiplies and adds two 16-bit sums at once.
OCTAVO_INLINE __m256i twice(__m256i lanes) { return _mm256_blend_epi16(lanes, _mm256_slli_epi32(lanes, 16), 0xAA); }

/// Q2_K's integer mins of a cell, by part and half.
struct HalfMins {
  __m256i min[2][2];

  OCTAVO_INLINE explicit HalfMins(const Byte* scales) {
    OCTAVO_UNROLL for (int part = 0; part < 2; ++part) {
      OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
        min[part][h] = twice(_mm256_srli_epi32(u8_lanes(scales + 16 * part + 8 * h), 4));
      }
    }
  }
  /// m0 * sum0 + m1 * sum1.
  OCTAVO_INLINE __m256i dot(const std::int16_t* sum8, int h) const {
    return _mm256_add_epi32(_mm256_madd_epi16(repeat32(sum8), min[0][h]),
                            _mm256_madd_epi16(repeat32(sum8 + 2), min[1][h]));
  }
};

/// A cell's float factors: acc = fma(isum, scale * x.scale, acc), then acc = fma(min, x.scaled_sum, acc), or for
/// integer mins acc = fma(their sum, min * x.scale, acc).
struct Factors {
  __m256 scale[2], min[2];
};

OCTAVO_INLINE __m256 minus(__m256 v) { return _mm256_xor_ps(v, _mm256_set1_ps(-0.0F)); }
OCTAVO_INLINE __m256 times(__m256 v, __m256i integers) { return _mm256_mul_ps(v, _mm256_cvtepi32_ps(integers)); }

template <F f>
OCTAVO_INLINE Factors factors_of(const Byte* group, const Byte* own) {
  Factors out;
  OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
    switch (cell_layout(f).scales) {
      case Scales::kF16: out.scale[h] = f16_lanes(own + 16 * h); break;
      case Scales::kF16Min:
        out.scale[h] = f16_lanes(own + 16 * h);
        out.min[h] = f16_lanes(own + 32 + 16 * h);
        break;
      case Scales::kE8m0: out.scale[h] = e8m0_lanes(own + 8 * h); break;
      case Scales::kSuper: out.scale[h] = times(f16_lanes(group + 16 * h), i8_lanes(own + 8 * h)); break;
      case Scales::kSuperMin:
        out.scale[h] = times(f16_lanes(group + 16 * h), u8_lanes(own + 8 * h));
        out.min[h] = times(minus(f16_lanes(group + 32 + 16 * h)), u8_lanes(own + 16 + 8 * h));
        break;
      case Scales::kHalves: out.scale[h] = f16_lanes(group + 16 * h); break;
      case Scales::kHalvesMin:
        out.scale[h] = f16_lanes(group + 16 * h);
        out.min[h] = minus(f16_lanes(group + 32 + 16 * h));
        break;
    }
  }
  return out;
}

/// One more cell; `scales` are its own part of the header.
template <class Core, int R, class Cell>
OCTAVO_INLINE void add_cell(const Cell& cell, const Byte* scales, const Factors& w, const Rows& x,
                            __m256 (&acc)[R][2]) {
  constexpr CellLayout kLayout = cell_layout(Core::kFormat);
  __m256i isum[R][2];
  Core::dot(cell, scales, x, isum);
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    const __m256 scale = _mm256_set1_ps(x.scale[r]);
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
      acc[r][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum[r][h]), _mm256_mul_ps(w.scale[h], scale), acc[r][h]);
      if constexpr (kLayout.has_min() && !kLayout.in_halves()) {
        acc[r][h] = _mm256_fmadd_ps(w.min[h], _mm256_set1_ps(x.scaled_sum[r]), acc[r][h]);
      }
    }
  }
  if constexpr (kLayout.has_min() && kLayout.in_halves()) {
    const HalfMins mins(scales);
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
      const __m256 scale = _mm256_set1_ps(x.scale[r]);
      OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
        const __m256 sum = _mm256_cvtepi32_ps(mins.dot(x.sum8 + 4 * r, h));
        acc[r][h] = _mm256_fmadd_ps(sum, _mm256_mul_ps(w.min[h], scale), acc[r][h]);
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
  [[nodiscard]] OCTAVO_INLINE const Byte* scales(std::uint32_t c) const {
    return header + cell_layout(f).header_bytes + c * cell_layout(f).header_bytes_per_cell;
  }
  OCTAVO_INLINE void next() {
    header = cell(cells());
    first += kGroupCells;
  }
};

/// R rows of one tile times one panel, weights unpacked in registers.
template <class Core, int R>
void few_rows(const ActRows& acts, std::uint32_t row, const Byte* panel, std::uint32_t num_cells, const Output& out) {
  constexpr F f = Core::kFormat;
  Rows x = rows_at(acts, row);
  __m256 acc[R][2];
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
  for (GroupWalk<f> group{panel, 0, num_cells}; group.more(); group.next()) {
    const std::uint32_t cells = group.cells();
    const Byte* cell = group.cell(0);
    for (std::uint32_t c = 0; c < cells; ++c, cell += cell_layout(f).cell_bytes, x.skip_blocks(1)) {
      add_cell<Core>(PackedCell<Core>{cell}, group.scales(c), factors_of<f>(group.header, group.scales(c)), x, acc);
    }
  }
  store_rows(out, row, acc);
}

/// A group of cells in the first-level cache.
template <class Core>
struct UnpackedGroup {
  alignas(64) Byte cells[kGroupCells][64 * Core::kVectors];
  Factors factors[kGroupCells];
};

template <class Core, int j = 0>
OCTAVO_INLINE void unpack_vectors(const Byte* cell, Byte* out) {
  if constexpr (j < Core::kVectors) {
    for (int h = 0; h < 2; ++h) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + 64 * j + 32 * h), Core::template vector<j>(cell, h));
    }
    unpack_vectors<Core, j + 1>(cell, out);
  }
}

/// R rows from `row` on, one group: acc goes through memory.
template <class Core, int R>
void add_group(const GroupWalk<Core::kFormat>& group, const UnpackedGroup<Core>& unpacked, const ActRows& acts,
               std::uint32_t row, __m256* sums) {
  Rows x = rows_at(acts, row);
  x.skip_blocks(group.first);
  __m256 acc[R][2];
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) { OCTAVO_UNROLL for (int h = 0; h < 2; ++h) acc[r][h] = sums[2 * r + h]; }
  const std::uint32_t cells = group.cells();
  for (std::uint32_t c = 0; c < cells; ++c, x.skip_blocks(1)) {
    add_cell<Core>(UnpackedCell{unpacked.cells[c]}, group.scales(c), unpacked.factors[c], x, acc);
  }
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) { OCTAVO_UNROLL for (int h = 0; h < 2; ++h) sums[2 * r + h] = acc[r][h]; }
}

constexpr std::uint32_t kRows = 4;  // of a register tile
/// From here on unpacking once pays; four-bit weights unpack almost for free.
template <F f>
constexpr std::uint32_t kManyRows = cell_layout(f).codes == Codes::kNibbles ? 32 : 8;
constexpr std::uint32_t kRowBlock = 96;  // rows that share an unpacked group; their sums stay in the first-level cache

/// Rows [begin, end) times one panel, each group unpacked once.
template <class Core>
void many_rows(const ActRows& x, std::uint32_t begin, std::uint32_t end, const Byte* panel, std::uint32_t num_cells,
               const Output& out) {
  constexpr F f = Core::kFormat;
  UnpackedGroup<Core> unpacked;
  __m256 sums[kRowBlock][2];
  for (auto& sum : sums) sum[0] = sum[1] = _mm256_setzero_ps();
  for (GroupWalk<f> group{panel, 0, num_cells}; group.more(); group.next()) {
    for (std::uint32_t c = 0; c < group.cells(); ++c) {
      unpack_vectors<Core>(group.cell(c), unpacked.cells[c]);
      unpacked.factors[c] = factors_of<f>(group.header, group.scales(c));
    }
    std::uint32_t row = begin;
    for (; row + kRows <= end; row += kRows) add_group<Core, kRows>(group, unpacked, x, row, sums[row - begin]);
    for (; row < end; ++row) add_group<Core, 1>(group, unpacked, x, row, sums[row - begin]);
  }
  for (std::uint32_t row = begin; row < end; ++row) {
    const __m256 sum[1][2] = {{sums[row - begin][0], sums[row - begin][1]}};
    store_rows(out, row, sum);
  }
}

template <class Core>
void gemm_block(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
                std::uint32_t panel_begin, std::uint32_t panel_end) {
  const std::uint32_t num_cells = w.k / kCellInputs;
  for (std::uint32_t begin = 0; begin < x.m; begin += kRowBlock) {
    const std::uint32_t end = x.m - begin < kRowBlock ? x.m : begin + kRowBlock;
    for (std::uint32_t p = panel_begin; p < panel_end; ++p) {
      const Byte* panel = reinterpret_cast<const Byte*>(w.panels) + p * w.panel_bytes;
      const Output out = output_of(p, w.n, bias, y, ldy);
      if (end - begin >= kManyRows<Core::kFormat>) {
        many_rows<Core>(x, begin, end, panel, num_cells, out);
        continue;
      }
      std::uint32_t row = begin;
      for (; row + kRows <= end; row += kRows) few_rows<Core, kRows>(x, row, panel, num_cells, out);
      switch (end - row) {
        case 3: few_rows<Core, 3>(x, row, panel, num_cells, out); break;
        case 2: few_rows<Core, 2>(x, row, panel, num_cells, out); break;
        case 1: few_rows<Core, 1>(x, row, panel, num_cells, out); break;
        default: break;
      }
    }
  }
}

/// The block formats, each by its core.
template <template <F> class Core>
OCTAVO_INLINE void gemm_blocks(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
                               std::uint32_t panel_begin, std::uint32_t panel_end) {
  switch (w.format) {
    case F::kQ4_0: return gemm_block<Core<F::kQ4_0>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ4_1: return gemm_block<Core<F::kQ4_1>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ5_0: return gemm_block<Core<F::kQ5_0>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ5_1: return gemm_block<Core<F::kQ5_1>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ8_0: return gemm_block<Core<F::kQ8_0>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ2_K: return gemm_block<Core<F::kQ2_K>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ3_K: return gemm_block<Core<F::kQ3_K>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ4_K: return gemm_block<Core<F::kQ4_K>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ5_K: return gemm_block<Core<F::kQ5_K>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kQ6_K: return gemm_block<Core<F::kQ6_K>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kIQ4_NL: return gemm_block<Core<F::kIQ4_NL>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kIQ4_XS: return gemm_block<Core<F::kIQ4_XS>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kMXFP4: return gemm_block<Core<F::kMXFP4>>(x, w, bias, y, ldy, panel_begin, panel_end);
    case F::kF32:
    case F::kF16:
    case F::kBF16: return gemm_float(x, w, bias, y, ldy, panel_begin, panel_end);
  }
}

}  // namespace
}  // namespace octavo::avx2
