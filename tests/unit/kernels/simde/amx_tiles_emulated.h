// AMX tiles as Intel's manual describes them, in plain C++, in place of kernels/x86/amx_tiles.h. Wrong shapes, which
// the CPU answers with a fault, end the program.
#define OCTAVO_KERNELS_X86_AMX_TILES_H
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kernels/x86/amx_tile_shapes.h"

namespace octavo::amx {

namespace {

struct TileUnit {
  bool in_use = false;
  TileShapes shapes;
  alignas(64) std::uint8_t tiles[8][16][64];

  void expect(bool holds) const {
    if (!holds) std::abort();
  }
};
inline thread_local TileUnit unit;

inline void use_tiles(const TileShapes& shapes) {
  unit.in_use = true;
  unit.shapes = shapes;
  std::memset(unit.tiles, 0, sizeof(unit.tiles));
  for (int t = 0; t < 8; ++t) unit.expect(shapes.rows[t] <= 16 && shapes.row_bytes[t] <= 64);
}
inline void release_tiles() { unit.in_use = false; }

template <int tile>
void tile_zero() {
  unit.expect(unit.in_use && unit.shapes.rows[tile] > 0);
  std::memset(unit.tiles[tile], 0, sizeof(unit.tiles[tile]));
}
template <int tile>
void tile_load(const void* from, std::uint64_t stride) {
  tile_zero<tile>();  // what lies beyond the shape is zeroed
  for (std::uint64_t r = 0; r < unit.shapes.rows[tile]; ++r) {
    std::memcpy(unit.tiles[tile][r], static_cast<const std::uint8_t*>(from) + r * stride, unit.shapes.row_bytes[tile]);
  }
}
template <int tile>
void tile_store(void* to, std::uint64_t stride) {
  unit.expect(unit.in_use && unit.shapes.rows[tile] > 0);
  for (std::uint64_t r = 0; r < unit.shapes.rows[tile]; ++r) {
    std::memcpy(static_cast<std::uint8_t*>(to) + r * stride, unit.tiles[tile][r], unit.shapes.row_bytes[tile]);
  }
}

/// sums [m][n], a [m][k words], b [k words][n]: as the instructions demand.
template <int sums, int a, int b>
void expect_product() {
  const TileShapes& s = unit.shapes;
  unit.expect(unit.in_use && s.rows[sums] == s.rows[a] && s.row_bytes[sums] == s.row_bytes[b] &&
              s.row_bytes[a] == 4 * s.rows[b]);
}
template <int sums, int a, int b>
void tile_dot_int8() {
  expect_product<sums, a, b>();
  for (int m = 0; m < unit.shapes.rows[sums]; ++m) {
    for (int n = 0; n < unit.shapes.row_bytes[sums] / 4; ++n) {
      std::int32_t sum;
      std::memcpy(&sum, unit.tiles[sums][m] + 4 * n, 4);
      for (int k = 0; k < unit.shapes.row_bytes[a]; ++k) {
        sum += static_cast<std::int8_t>(unit.tiles[a][m][k]) *
               static_cast<std::int8_t>(unit.tiles[b][k / 4][4 * n + k % 4]);
      }
      std::memcpy(unit.tiles[sums][m] + 4 * n, &sum, 4);
    }
  }
}

/// Denormals in and out are zero, whatever MXCSR says; rounded to nearest even.
inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }
inline float from_bf16(const std::uint8_t* p) {
  std::uint16_t half;
  std::memcpy(&half, p, 2);
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float out;
  std::memcpy(&out, &bits, 4);
  return flushed(out);
}
template <int sums, int a, int b>
void tile_dot_bf16() {
  expect_product<sums, a, b>();
  for (int m = 0; m < unit.shapes.rows[sums]; ++m) {
    for (int n = 0; n < unit.shapes.row_bytes[sums] / 4; ++n) {
      float chain[2] = {0, 0};
      for (int k = 0; k < unit.shapes.row_bytes[a] / 2; ++k) {
        chain[k % 2] = flushed(std::fma(from_bf16(unit.tiles[a][m] + 2 * k),
                                        from_bf16(unit.tiles[b][k / 2] + 4 * n + 2 * (k % 2)), chain[k % 2]));
      }
      float sum;
      std::memcpy(&sum, unit.tiles[sums][m] + 4 * n, 4);
      sum = flushed(flushed(sum) + flushed(chain[0] + chain[1]));
      std::memcpy(unit.tiles[sums][m] + 4 * n, &sum, 4);
    }
  }
}

}  // namespace
}  // namespace octavo::amx
