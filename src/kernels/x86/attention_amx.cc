// Attention over BF16 keys and values on AMX tiles: a cell of K is a stack of B tiles, [32 dimensions / 2][16
// tokens][2], and so is a cell of V, [8 pairs of tokens][16 dimensions][2]. tdpbf16ps adds in the order of the numerics
// contract: one block of an even and an odd chain per 32 dimensions, and per 16 tokens.
#include "kernels/x86/amx_tiles.h"
#include "kernels/x86/v16_avx512.h"
//
#include "kernels/x86/attention_impl.h"

namespace octavo::avx512 {
namespace {

using amx::release_tiles;
using amx::tile_dot_bf16;
using amx::tile_load;
using amx::tile_store;
using amx::tile_zero;
using amx::TileShapes;
using amx::use_tiles;

/// For BF16 and heads of whole tiles, whatever the rows. A tile's q is bf16 [head_dim / 32][kQueryTileRows][32].
struct TileCells {
  static constexpr std::uint64_t kRowBytes = 64;

  static bool fits(KvType type, std::uint32_t head_dim) { return type == KvType::kBF16 && head_dim % 32 == 0; }

  static void pack_query(KvType type, const float* q, std::uint32_t head_dim, float* tile, std::uint32_t row) {
    if (!fits(type, head_dim)) return VectorCells::pack_query(type, q, head_dim, tile, row);
    auto* numbers = reinterpret_cast<std::uint16_t*>(tile);
    for (std::uint32_t d = 0; d < head_dim; d += 16) {
      const std::uint32_t at = (d / 32 * kQueryTileRows + row) * 32 + d % 32;
      store_low_halves(numbers + at, shift_right<16>(bf16_high(load(q + d))));
    }
  }

  /// Two cells share each load of the queries: sums in tiles 0 and 1, queries in 2, keys in 4 and 5.
  static void score(KvType type, const Tile& tile, const SplitCells& cells) {
    if (!fits(type, tile.head_dim)) return VectorCells::score(type, tile, cells);
    const TileShapes shapes = shapes_for(tile.rows, 64, 16);
    use_tiles(shapes);
    for (std::uint32_t cell = cells.begin; cell < cells.end; cell += 2) {
      const bool two = cell + 1 < cells.end;
      const Cell first = cells.k(cell), second = two ? cells.k(cell + 1) : first;
      fetch(first, tile.head_dim * kCellTokens * 2);
      if (two) fetch(second, tile.head_dim * kCellTokens * 2);
      tile_zero<0>();
      tile_zero<1>();
      for (std::uint32_t d = 0; d < tile.head_dim; d += 32) {
        const std::uint64_t offset = std::uint64_t{d} * kCellTokens * 2;
        tile_load<2>(tile.q + d / 32 * kQueryTileRows * 16, kRowBytes);
        tile_load<4>(first.at + offset, kRowBytes);
        tile_dot_bf16<0, 2, 4>();
        if (!two) continue;
        tile_load<5>(second.at + offset, kRowBytes);
        tile_dot_bf16<1, 2, 5>();
      }
      tile_store<0>(tile.scores + cell * kCellTokens, kSplitTokens * sizeof(float));
      if (two) tile_store<1>(tile.scores + (cell + 1) * kCellTokens, kSplitTokens * sizeof(float));
    }
    release_tiles();
  }

  /// Up to 64 dimensions at a time through all cells: sums in tiles 0 to 3, weights in 4, values in 6 and 7.
  static void weight(KvType type, const Tile& tile, const SplitCells& cells) {
    if (!fits(type, tile.head_dim)) return VectorCells::weight(type, tile, cells);
    alignas(64) std::uint16_t weights[kSplitTokens / kCellTokens][kQueryTileRows][kCellTokens];
    for (std::uint32_t cell = cells.begin; cell < cells.end; ++cell) {
      for (std::uint32_t row = 0; row < tile.rows; ++row) {
        const V16f weight = load(tile.scores + row * kSplitTokens + cell * kCellTokens);  // rounded already
        store_low_halves(weights[cell][row], shift_right<16>(bits(weight)));
      }
    }
    const TileShapes shapes = shapes_for(tile.rows, 32, 8);
    use_tiles(shapes);
    for (std::uint32_t d = 0; d < tile.head_dim; d += 64) {
      const bool whole = d + 64 <= tile.head_dim;  // or 32 dimensions
      tile_zero<0>();
      tile_zero<1>();
      tile_zero<2>();
      tile_zero<3>();
      for (std::uint32_t index = cells.begin; index < cells.end; ++index) {
        const Cell cell = cells.v(index);
        if (d == 0) fetch(cell, tile.head_dim * kCellTokens * 2);
        const std::byte* v = cell.at + std::uint64_t{d} * 4;
        const std::uint64_t stride = std::uint64_t{tile.head_dim} * 4;
        tile_load<4>(weights[index], 32);
        tile_load<6>(v, stride);
        tile_dot_bf16<0, 4, 6>();
        tile_load<7>(v + 64, stride);
        tile_dot_bf16<1, 4, 7>();
        if (!whole) continue;
        tile_load<6>(v + 128, stride);
        tile_dot_bf16<2, 4, 6>();
        tile_load<7>(v + 192, stride);
        tile_dot_bf16<3, 4, 7>();
      }
      float* o = tile.o + d;
      const std::uint64_t stride = tile.stride * sizeof(float);
      tile_store<0>(o, stride);
      tile_store<1>(o + 16, stride);
      if (!whole) continue;
      tile_store<2>(o + 32, stride);
      tile_store<3>(o + 48, stride);
    }
    release_tiles();
  }

 private:
  /// Sums in 0 to 3, left operands in 2 or 4, right ones above. Tile 2 is a left operand only where it is no sum.
  static TileShapes shapes_for(std::uint32_t rows, std::uint16_t left_bytes, std::uint8_t right_rows) {
    TileShapes shapes;
    shapes.set(0, 3, static_cast<std::uint8_t>(rows), 64);
    shapes.set(4, 7, right_rows, 64);
    if (left_bytes == 32) shapes.set(4, 4, static_cast<std::uint8_t>(rows), 32);
    return shapes;
  }
  static void fetch(const Cell& cell, std::uint64_t bytes) {
    for (std::uint64_t i = 0; i < bytes; i += 64) cell.fetch(i);
  }
};

}  // namespace
}  // namespace octavo::avx512

namespace octavo::amx {

void attend(const PagedKv& kv, const AttnSpec& spec, const KvRow& row, const AttnTask& task, const float* q, float* out,
            float* states, std::byte* scratch) {
  avx512::attend_with<avx512::TileCells>(kv, spec, row, task, q, out, states, scratch);
}

}  // namespace octavo::amx
