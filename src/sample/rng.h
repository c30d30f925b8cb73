// A counter-based random number: a pure function of who asks for it, so that batch mates, preemption and thread counts
// cannot change a draw. Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, 2011).
#pragma once
#include <array>
#include <cstdint>

#include "base/ids.h"

namespace octavo {

[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                            std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiply0 * counter[0];
    const std::uint64_t product1 = kMultiply1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

/// Uniform in [0, 1), 24 bits: draw `draw` for the token at `position` of choice `choice` of a request with `seed`.
[[nodiscard]] constexpr float uniform(std::uint64_t seed, std::uint32_t choice, Pos position, std::uint32_t draw) {
  const auto bits = philox({position.value, choice, draw, 0},
                           {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return static_cast<float>(bits[0] >> 8) * 0x1p-24F;
}

}  // namespace octavo
