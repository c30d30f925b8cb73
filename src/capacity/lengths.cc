#include "capacity/lengths.h"

#include <algorithm>
#include <cmath>

namespace octavo {

std::uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

std::uint32_t length_at(std::span<const Quantile> curve, double share) {
  const auto above = std::ranges::find_if(curve, [share](const Quantile& q) { return q.share >= share; });
  if (above == curve.begin()) return static_cast<std::uint32_t>(curve.front().tokens);
  if (above == curve.end()) return static_cast<std::uint32_t>(curve.back().tokens);
  const Quantile &from = above[-1], &to = *above;
  const double part = (share - from.share) / (to.share - from.share);
  return static_cast<std::uint32_t>(std::lround(from.tokens * std::pow(to.tokens / from.tokens, part)));
}

}  // namespace octavo
