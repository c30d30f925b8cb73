// Strong ids of the engine's inside; the public ones come from octavo/ids.h.
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>

#include "octavo/ids.h"

namespace octavo {

using SeqId = Id<struct SeqTag, std::uint64_t>;    // one generated sequence; a request with n > 1 owns several
using StepId = Id<struct StepTag, std::uint64_t>;  // ascending; one per committed plan
using GroupId = Id<struct GroupTag>;               // layers with equal attention kind: one block table
using BlockId = Id<struct BlockTag>;               // of the one pool; shared by all layers of a group
using HostSlot = Id<struct HostSlotTag>;           // a page of host memory that keeps a swapped block

/// Absolute position of a token in its sequence. Pos + tokens = Pos; Pos - Pos = tokens.
struct Pos {
  std::uint32_t value{};
  friend constexpr auto operator<=>(const Pos&, const Pos&) = default;
  friend constexpr Pos operator+(Pos p, std::uint32_t tokens) { return {p.value + tokens}; }
  friend constexpr std::uint32_t operator-(Pos a, Pos b) { return a.value - b.value; }
};

using Micros = std::chrono::microseconds;  // injected time; nothing below the engine reads a clock

inline constexpr BlockId kNullBlock{0};  // never allocated, all zero

}  // namespace octavo
