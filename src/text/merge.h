// The merge loop that byte-level BPE and SPM share: of all neighbours that may be joined always the cheapest pair
// first, the leftmost among equals. A heap over a linked list: n log n for any text, and nearly linear for a long
// repetition, whose candidates come in a few ascending runs.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
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

/// Two neighbours that may be joined.
struct Candidate {
  std::uint64_t order;   // cost, then place of the left symbol
  std::uint32_t length;  // of both
  TokenId id;
  [[nodiscard]] std::int32_t left() const { return static_cast<std::int32_t>(order & 0xFFFFFFFF); }
};

/// The lowest order first. Of an ascending run only its first is in the heap.
class CandidateQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }

  void push(const Candidate& candidate) {
    // The run that it extends with the smallest step, so that one run does not spoil what suits another.
    std::size_t best = kRuns;
    for (std::size_t i = 0; i < kRuns; ++i) {
      if (runs_[i].back <= candidate.order + 1 && (best == kRuns || runs_[i].back > runs_[best].back)) best = i;
    }
    if (best == kRuns) return enter(candidate, kRuns);
    Run& run = runs_[best];
    if (run.back == 0) {
      enter(candidate, best);
    } else {
      run.waiting.push_back(candidate);
    }
    run.back = candidate.order + 1;
  }

  Candidate pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Entry entry = heap_.back();
    heap_.pop_back();
    if (entry.run == kRuns) return entry.candidate;
    Run& run = runs_[entry.run];
    if (run.next < run.waiting.size()) {
      enter(run.waiting[run.next++], entry.run);
    } else {
      run.waiting.clear();
      run.next = 0, run.back = 0;
    }
    return entry.candidate;
  }

 private:
  static constexpr std::size_t kRuns = 8;
  struct Run {
    std::uint64_t back = 0;  // order of the last, plus one; 0: none is in the heap
    std::vector<Candidate> waiting;
    std::size_t next = 0;  // in `waiting`
  };
  struct Entry {
    Candidate candidate;
    std::size_t run;  // kRuns: of none
  };

  static bool later(const Entry& a, const Entry& b) { return a.candidate.order > b.candidate.order; }
  void enter(const Candidate& candidate, std::size_t run) {
    heap_.push_back({candidate, run});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  std::vector<Entry> heap_;
  std::array<Run, kRuns> runs_;
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
    for (std::int32_t i = 0; at(i) < symbols_.size(); ++i) consider(join, i);
    while (!queue_.empty()) {
      const Candidate best = queue_.pop();
      Symbol& left = symbols_[at(best.left())];
      // Symbols only grow, so equal length means that neither of the two was joined to another since.
      if (left.next < 0 || left.length + symbols_[at(left.next)].length != best.length) continue;

      Symbol& right = symbols_[at(left.next)];
      left.length = best.length;
      left.id = best.id;
      left.next = std::exchange(right.next, -1);
      if (left.next >= 0) symbols_[at(left.next)].previous = best.left();
      for (const std::int32_t i : {left.previous, best.left()}) consider(join, i);
    }
  }

  /// The symbols that are left, in order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[at(i)].next) visit(symbols_[at(i)]);
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  // Adds the pair that begins at `left` if there is one and it may be joined.
  template <class JoinRule>
  void consider(const JoinRule& join, std::int32_t left) {
    if (left < 0 || symbols_[at(left)].next < 0) return;
    const Symbol &a = symbols_[at(left)], &b = symbols_[at(symbols_[at(left)].next)];
    const std::optional<Join> joined = join(a, b);
    if (joined) queue_.push({std::uint64_t{joined->cost} << 32 | at(left), a.length + b.length, joined->id});
  }

  std::vector<Symbol> symbols_;
  CandidateQueue queue_;
};

}  // namespace octavo
