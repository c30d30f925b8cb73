// The merge loop that byte-level BPE and SPM share: of all neighbours that may be joined always the cheapest pair
// first, the leftmost among equals. A heap over a linked list: n log n for any text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "octavo/ids.h"

namespace octavo {

struct Symbol {
  std::uint32_t begin = 0;    // place in the text,
  std::uint32_t length = 0;   // in bytes
  std::optional<TokenId> id;  // none: its text is no token (so far)
  std::int32_t previous = -1;
  std::int32_t next = -1;
};

struct Join {
  std::uint32_t cost;  // lower first
  TokenId id;          // what the pair becomes
};

/// Scratch memory for many merges. Use: clear(), push_back() the symbols in order, merge(), for_each().
class Merger {
 public:
  void clear() { symbols_.clear(); }

  void push_back(std::uint32_t begin, std::uint32_t length, std::optional<TokenId> id) {
    const auto index = static_cast<std::int32_t>(symbols_.size());
    if (index > 0) symbols_.back().next = index;
    symbols_.push_back({begin, length, id, index - 1, -1});
  }

  /// `join(left, right)` says whether two neighbours may become one: std::optional<Join>.
  template <class JoinRule>
  void merge(const JoinRule& join) {
    heap_.clear();
    for (std::int32_t i = 0; at(i) < symbols_.size(); ++i) consider(join, i);
    std::make_heap(heap_.begin(), heap_.end(), later);

    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const Candidate best = heap_.back();
      heap_.pop_back();
      Symbol& left = symbols_[at(best.left())];
      // Symbols only grow, so equal length means that neither of the two was joined to another since.
      if (left.next < 0 || left.length + symbols_[at(left.next)].length != best.length) continue;

      Symbol& right = symbols_[at(left.next)];
      left.length = best.length;
      left.id = best.id;
      left.next = std::exchange(right.next, -1);
      if (left.next >= 0) symbols_[at(left.next)].previous = best.left();
      for (const std::int32_t i : {left.previous, best.left()}) {
        if (consider(join, i)) std::push_heap(heap_.begin(), heap_.end(), later);
      }
    }
  }

  /// The symbols that are left, in order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[at(i)].next) visit(symbols_[at(i)]);
  }

 private:
  struct Candidate {
    std::uint64_t order;   // cost, then place of the left symbol
    std::uint32_t length;  // of both
    TokenId id;
    [[nodiscard]] std::int32_t left() const { return static_cast<std::int32_t>(order & 0xFFFFFFFF); }
  };

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  static bool later(const Candidate& a, const Candidate& b) { return a.order > b.order; }

  // Adds the pair that begins at `left` if there is one and it may be joined.
  template <class JoinRule>
  bool consider(const JoinRule& join, std::int32_t left) {
    if (left < 0 || symbols_[at(left)].next < 0) return false;
    const Symbol &a = symbols_[at(left)], &b = symbols_[at(symbols_[at(left)].next)];
    const std::optional<Join> joined = join(a, b);
    if (joined) heap_.push_back({std::uint64_t{joined->cost} << 32 | at(left), a.length + b.length, joined->id});
    return joined.has_value();
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace octavo
