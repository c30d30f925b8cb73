// The linear contract on AMX tiles: 16 rows x one panel x one cell an instruction. Integer sums are exact in any order,
// and tdpbf16ps adds in the tile-32 order by itself, so the bits are those of every other table.
//
// A cell of 32 inputs is one B tile once its weights are signed bytes: [8][16 lanes][4]. They are unpacked once for a
// block of rows. Its integer sums then go through memory into the f32 accumulators, which costs about as much as the
// tiles themselves: a store is asked for two cells after its product, and read one cell later.
//
// Too few rows to fill tiles, and formats with two scales a cell (Q6_K, Q3_K, Q2_K: their halves would fill the tiles
// by half), are left to AVX-512.
#include "kernels/x86/amx_tiles.h"
#include "kernels/x86/gemm_avx512_cells.h"

namespace octavo::amx {
namespace {

using avx512::Byte;
using avx512::F;
using avx512::Output;

constexpr std::uint32_t kBlockTiles = 8;  // row tiles a block: their activations stay in the second-level cache

/// Sums in tiles 0 to 3, activations in 4 and 5, weights in 6 and 7.
constexpr TileShapes shapes(std::uint8_t weight_rows, std::uint16_t activation_bytes) {
  TileShapes out;
  out.set(0, 3, 16, 64);
  out.set(4, 5, 16, activation_bytes);
  out.set(6, 7, weight_rows, 64);
  return out;
}

// --- Block formats --------------------------------------------------------------------------------------------------

/// Cells of a group, unpacked: signed weights and what multiplies their sums.
struct Group {
  alignas(64) Byte weights[kGroupCells][8][64];
  __m512 scale[kGroupCells], min[kGroupCells];
};

template <F f, int j>
OCTAVO_INLINE void unpack_vector(const Byte* cell, Byte (&out)[8][64]) {
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(cell_layout(f).offset));
  const __m512i unsigned_bytes = avx512::weights<f, j>(cell);
  _mm512_store_si512(out[j], _mm512_sub_epi8(unsigned_bytes, offset));
  if constexpr (j < 7) unpack_vector<f, j + 1>(cell, out);
}

template <F f>
void unpack_group(const Byte* header, std::uint32_t cells, Group& out) {
  constexpr CellLayout kLayout = cell_layout(f);
  const Byte* cell = header + group_header_bytes(kLayout, cells);
  for (std::uint32_t c = 0; c < cells; ++c, cell += kLayout.cell_bytes) {
    const avx512::Factors factors =
        avx512::factors_of<f>(header, header + kLayout.header_bytes + c * kLayout.header_bytes_per_cell);
    out.scale[c] = factors.scale;
    out.min[c] = factors.min;
    unpack_vector<f, 0>(cell, out.weights[c]);
  }
}

/// One group's cells for one tile of rows; step c multiplies cell c, stores cell c - 2 and adds cell c - 3.
template <F f>
struct GroupTimesTile {
  const Group& group;
  std::uint32_t cells;
  avx512::Rows x;
  std::int32_t (&sums)[2][16][16];
  __m512 (&acc)[16];

  template <std::uint32_t c>
  OCTAVO_INLINE void steps() {
    if constexpr (c < kGroupCells) {
      if (c < cells) {
        tile_zero<c % 4>();
        tile_load<4 + c % 2>(x.q + c * kTileRows * kCellInputs, kCellInputs);
        tile_load<6 + c % 2>(group.weights[c], 64);
        tile_dot_int8<c % 4, 4 + c % 2, 6 + c % 2>();
      }
    }
    if constexpr (c >= 2 && c - 2 < kGroupCells) {
      if (c - 2 < cells) tile_store<(c - 2) % 4>(sums[c % 2], 64);
    }
    if constexpr (c >= 3 && c - 3 < kGroupCells) {
      if (c - 3 < cells) add<c - 3>();
    }
    if constexpr (c < kGroupCells + 2) steps<c + 1>();
  }

  template <std::uint32_t c>
  OCTAVO_INLINE void add() {
    const float* scale = x.scale + c * kTileRows;
    const float* scaled_sum = x.scaled_sum + c * kTileRows;
    OCTAVO_UNROLL for (int r = 0; r < 16; ++r) {
      const __m512 isum = _mm512_cvtepi32_ps(_mm512_load_si512(sums[c % 2][r]));
      acc[r] = _mm512_fmadd_ps(isum, _mm512_mul_ps(group.scale[c], _mm512_set1_ps(scale[r])), acc[r]);
      if constexpr (cell_layout(f).has_min()) {
        acc[r] = _mm512_fmadd_ps(group.min[c], _mm512_set1_ps(scaled_sum[r]), acc[r]);
      }
    }
  }
};

/// `tiles` full tiles of rows from `row` on, times one panel.
template <F f>
void rows_times_panel(const ActRows& x, std::uint32_t row, std::uint32_t tiles, const Byte* panel, const Output& out) {
  constexpr CellLayout kLayout = cell_layout(f);
  const std::uint32_t num_cells = x.k / kCellInputs;
  alignas(64) float held[kBlockTiles][16][16];  // the accumulators of tiles whose turn it is not
  std::memset(held, 0, tiles * sizeof(held[0]));
  Group group;
  alignas(64) std::int32_t sums[2][16][16];
  for (std::uint32_t first = 0; first < num_cells; first += kGroupCells) {
    const std::uint32_t cells = num_cells - first < kGroupCells ? num_cells - first : kGroupCells;
    unpack_group<f>(panel, cells, group);
    panel += group_header_bytes(kLayout, cells) + cells * kLayout.cell_bytes;
    for (std::uint32_t t = 0; t < tiles; ++t) {
      __m512 acc[16];
      OCTAVO_UNROLL for (int r = 0; r < 16; ++r) acc[r] = _mm512_load_ps(held[t][r]);
      const avx512::Rows rows = avx512::rows_at(x, row + t * kTileRows, first);
      GroupTimesTile<f>{group, cells, rows, sums, acc}.template steps<0>();
      if (first + kGroupCells < num_cells) {
        OCTAVO_UNROLL for (int r = 0; r < 16; ++r) _mm512_store_ps(held[t][r], acc[r]);
      } else {
        avx512::store_rows(out, row + t * kTileRows, acc);
      }
    }
  }
}

template <F f>
void gemm_block(const ActRows& x, std::uint32_t full_tiles, const PackedMatrix& w, const float* bias, float* y,
                std::uint64_t ldy, std::uint32_t panel_begin, std::uint32_t panel_end) {
  static constexpr TileShapes kShapes = shapes(8, 32);
  use_tiles(kShapes);
  for (std::uint32_t tile = 0; tile < full_tiles; tile += kBlockTiles) {
    const std::uint32_t tiles = full_tiles - tile < kBlockTiles ? full_tiles - tile : kBlockTiles;
    for (std::uint32_t p = panel_begin; p < panel_end; ++p) {
      rows_times_panel<f>(x, tile * kTileRows, tiles, reinterpret_cast<const Byte*>(w.panels) + p * w.panel_bytes,
                          avx512::output_of(p, w.n, bias, y, ldy));
    }
  }
  release_tiles();
}

// --- BF16 -----------------------------------------------------------------------------------------------------------

/// 16 rows x 32 inputs in their natural order, from the prepared one (2, 0, 3, 1 in every four).
OCTAVO_INLINE void in_order(const Bf16* x, std::uint64_t width, Byte (&out)[16][64]) {
  const __m512i order = _mm512_set4_epi32(0x0D0C0908, 0x0F0E0B0A, 0x05040100, 0x07060302);
  OCTAVO_UNROLL for (int r = 0; r < 16; ++r) {
    _mm512_store_si512(out[r], _mm512_shuffle_epi8(_mm512_loadu_si512(x + r * width), order));
  }
}

/// One tile of rows times up to four panels, each sum in a tile of its own for all of K.
struct PanelsTimesTile {
  const Byte* panels[4];
  std::uint32_t count;

  template <int p>
  OCTAVO_INLINE void zero() const {
    tile_zero<p>();
    if constexpr (p < 3) zero<p + 1>();
  }
  template <int p>
  OCTAVO_INLINE void multiply(std::uint64_t offset) const {
    if (p < static_cast<int>(count)) {
      tile_load<6 + p % 2>(panels[p] + offset, 64);
      tile_dot_bf16<p, 4, 6 + p % 2>();
    }
    if constexpr (p < 3) multiply<p + 1>(offset);
  }
  template <int p, class Take>
  OCTAVO_INLINE void store(float (&sums)[16][16], const Take& take) const {
    if (p < static_cast<int>(count)) {
      tile_store<p>(sums, 64);
      take(p);
    }
    if constexpr (p < 3) store<p + 1>(sums, take);
  }
};

void gemm_bf16(const ActRows& x, std::uint32_t full_tiles, const PackedMatrix& w, const float* bias, float* y,
               std::uint64_t ldy, std::uint32_t panel_begin, std::uint32_t panel_end) {
  static constexpr TileShapes kShapes = shapes(16, 64);
  const std::uint64_t width = (std::uint64_t{x.k} + 31) / 32 * 32;
  alignas(64) Byte rows[16][64];
  alignas(64) float sums[16][16];
  use_tiles(kShapes);
  for (std::uint32_t first = panel_begin; first < panel_end; first += 4) {
    PanelsTimesTile panels{{}, panel_end - first < 4 ? panel_end - first : 4};
    for (std::uint32_t p = 0; p < panels.count; ++p) {
      panels.panels[p] = reinterpret_cast<const Byte*>(w.panels) + (first + p) * w.panel_bytes;
    }
    for (std::uint32_t row = 0; row < full_tiles * kTileRows; row += kTileRows) {
      panels.zero<0>();
      for (std::uint64_t k = 0; k < width; k += 32) {
        in_order(x.bf16 + row * width + k, width, rows);
        tile_load<4>(rows, 64);
        panels.multiply<0>(k * 32);  // 16 lanes of 2 bytes an input
      }
      panels.store<0>(sums, [&](int p) {
        __m512 acc[16];
        OCTAVO_UNROLL for (int r = 0; r < 16; ++r) acc[r] = _mm512_load_ps(sums[r]);
        avx512::store_rows(avx512::output_of(first + static_cast<std::uint32_t>(p), w.n, bias, y, ldy), row, acc);
      });
    }
  }
  release_tiles();
}

// --- The entry ------------------------------------------------------------------------------------------------------

/// Rows from a multiple of 16 on.
ActRows rows_from(const ActRows& x, std::uint32_t row) {
  ActRows out = x;
  out.m = x.m - row;
  if (x.kind == ActKind::kBF16) {
    out.bf16 = x.bf16 + row * ((std::uint64_t{x.k} + 31) / 32 * 32);
  } else {
    const std::uint64_t slots = std::uint64_t{row} * (x.k / kCellInputs);
    out.q = x.q + slots * kCellInputs;
    out.scale = x.scale + slots;
    out.sum8 = x.sum8 + slots * 4;
    out.scaled_sum = x.scaled_sum + slots;
  }
  return out;
}

/// From how many rows on tiles are faster than vpdpbusd: unpacking has to pay.
constexpr std::uint32_t least_tiles(F f) {
  switch (f) {
    case F::kQ8_0: return 2;
    case F::kBF16: return 1;
    case F::kF32:
    case F::kF16: return UINT32_MAX;
    default: return cell_layout(f).in_halves() ? UINT32_MAX : 1;
  }
}

}  // namespace

void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
          std::uint32_t panel_begin, std::uint32_t panel_end) {
  const std::uint32_t tiles = x.m / kTileRows, done = tiles < least_tiles(w.format) ? 0 : tiles * kTileRows;
  if (done > 0) {
    switch (w.format) {
      case F::kQ4_0: gemm_block<F::kQ4_0>(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kQ4_1: gemm_block<F::kQ4_1>(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kQ5_0: gemm_block<F::kQ5_0>(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kQ5_1: gemm_block<F::kQ5_1>(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kQ8_0: gemm_block<F::kQ8_0>(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kQ4_K: gemm_block<F::kQ4_K>(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kQ5_K: gemm_block<F::kQ5_K>(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kIQ4_NL: gemm_block<F::kIQ4_NL>(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kIQ4_XS: gemm_block<F::kIQ4_XS>(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kMXFP4: gemm_block<F::kMXFP4>(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kBF16: gemm_bf16(x, tiles, w, bias, y, ldy, panel_begin, panel_end); break;
      case F::kQ2_K:
      case F::kQ3_K:
      case F::kQ6_K:
      case F::kF16:
      case F::kF32: break;
    }
  }
  if (done < x.m) avx512::gemm(rows_from(x, done), w, bias, y + done * ldy, ldy, panel_begin, panel_end);
}

}  // namespace octavo::amx
