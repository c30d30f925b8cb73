// The order of every sum over a row: 16 lanes, lane j takes elements 16i + j, then a tree 8-4-2-1.
#pragma once
#include <cstdint>

namespace octavo::ref {

struct Lanes {
  float lane[16] = {};

  float& operator[](std::uint32_t i) { return lane[i % 16]; }
  [[nodiscard]] float sum() const {
    Lanes tree = *this;
    for (std::uint32_t half : {8U, 4U, 2U, 1U}) {
      for (std::uint32_t j = 0; j < half; ++j) tree.lane[j] = tree.lane[j] + tree.lane[j + half];
    }
    return tree.lane[0];
  }
};

}  // namespace octavo::ref
