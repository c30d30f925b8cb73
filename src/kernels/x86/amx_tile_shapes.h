// The shapes of AMX tiles: what the instructions, and the model of them in the tests, are configured with.
#pragma once
#include <cstdint>

namespace octavo::amx {

/// What LDTILECFG reads: rows and bytes a row of each of the eight tiles.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr void set(int first, int last, std::uint8_t num_rows, std::uint16_t bytes) {
    for (int tile = first; tile <= last; ++tile) rows[tile] = num_rows, row_bytes[tile] = bytes;
  }
};

}  // namespace octavo::amx
