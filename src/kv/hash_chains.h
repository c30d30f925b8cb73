// A hash index over the numbers [0, size), each in it at most once. It stores no keys: whoever owns the numbers knows
// them. No allocation after construction.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace octavo {

class HashChains {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  explicit HashChains(std::uint32_t size) : heads_(std::bit_ceil(std::max(size, 1U)), kNone), next_(size, kNone) {}

  void insert(std::uint64_t key, std::uint32_t number) {
    std::uint32_t& head = heads_[bucket(key)];
    next_[number] = head, head = number;
  }
  void erase(std::uint64_t key, std::uint32_t number) {
    std::uint32_t* link = &heads_[bucket(key)];
    while (*link != number) link = &next_[*link];
    *link = next_[number];
  }
  /// The number of this key that matches, or kNone.
  template <class Matches>
  [[nodiscard]] std::uint32_t find(std::uint64_t key, const Matches& matches) const {
    std::uint32_t number = heads_[bucket(key)];
    while (number != kNone && !matches(number)) number = next_[number];
    return number;
  }

 private:
  [[nodiscard]] std::size_t bucket(std::uint64_t key) const {
    return ((key * 0x9E3779B97F4A7C15U) >> 32) & (heads_.size() - 1);
  }

  std::vector<std::uint32_t> heads_, next_;
};

}  // namespace octavo
