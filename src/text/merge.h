// The merge loop that byte-level BPE and SPM share: of all neighbours that may be joined always the cheapest pair
// first, the leftmost among equals. A heap over a linked list: n log n for any text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
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
  double cost;  // lower first
  TokenId id;   // what the pair becomes
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
    const auto consider = [&](std::int32_t left, std::int32_t right) {
      if (left < 0 || right < 0) return;
      const Symbol &a = symbols_[at(left)], &b = symbols_[at(right)];
      if (const std::optional<Join> joined = join(a, b)) {
        heap_.push_back({*joined, left, right, a.length + b.length});
        std::push_heap(heap_.begin(), heap_.end(), later);
      }
    };
    for (std::int32_t i = 1; at(i) < symbols_.size(); ++i) consider(i - 1, i);

    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const Candidate best = heap_.back();
      heap_.pop_back();
      Symbol &left = symbols_[at(best.left)], &right = symbols_[at(best.right)];
      // Symbols only grow, so equal length means that neither was joined to another since.
      if (left.next != best.right || left.length + right.length != best.length) continue;

      left.length = best.length;
      left.id = best.join.id;
      left.next = right.next;
      if (right.next >= 0) symbols_[at(right.next)].previous = best.left;
      right.next = kGone;
      consider(left.previous, best.left);
      consider(best.left, left.next);
    }
  }

  /// The symbols that are left, in order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[at(i)].next) visit(symbols_[at(i)]);
  }

 private:
  struct Candidate {
    Join join;
    std::int32_t left, right;
    std::uint32_t length;
  };
  static constexpr std::int32_t kGone = -2;

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  static bool later(const Candidate& a, const Candidate& b) {
    return a.join.cost != b.join.cost ? a.join.cost > b.join.cost : a.left > b.left;
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace octavo
