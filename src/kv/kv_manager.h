// KV bookkeeping: which sequence owns which block. No bytes, threads, clock or model: server and simulator run this.
//
// A plan under construction is a stack. Planning calls write in place and journal their inverse; a mark is a height.
//   take something back = rewind to its mark     abandon = rewind to the bottom     commit = forget the journal
// Inverses run in reverse order, so the free list comes back node for node. While a plan is open only its planner may
// look at this object. Planning calls that answer false have touched nothing.
//
// Growing and settling are two calls: grow() takes blocks, settle() has the fresh ones zeroed by the plan and lets
// others find the full ones. A planner settles only what it will not take back, so nobody ever leans on a block that
// nobody fills, and no block is zeroed for two owners.
//
// A sequence has the same number of pages in every group; behind a window they are gone (TableView::first_page).
// Threads: engine thread only. Memory: nodes, tables and index are sized in the constructor; the journal keeps its
// capacity.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "kv/block_ops.h"
#include "kv/kv_types.h"

namespace octavo {

/// Height of a plan under construction: the journal and the arrays of its block operations.
struct KvMark {
  std::size_t journal = 0, copies = 0, zeros = 0;
};

class KvManager {
 public:
  explicit KvManager(const KvConfig& config);
  ~KvManager();

  // The open plan. Block operations are appended to `ops`, and cut off again by rewind.
  void begin(BlockOps& ops);
  [[nodiscard]] bool open() const;
  [[nodiscard]] KvMark mark() const;
  void rewind(const KvMark& mark);
  void commit();
  void abandon();

  // Questions.
  [[nodiscard]] const KvConfig& config() const;
  [[nodiscard]] PrefixHit lookup(const SeqTokens& tokens) const;
  [[nodiscard]] std::uint32_t blocks_for(std::uint32_t tokens) const;  // most blocks that so long a sequence holds
  [[nodiscard]] bool can_ever_hold(std::uint32_t tokens) const;        // refuse at the door
  [[nodiscard]] std::uint32_t longest() const;  // most tokens that can_ever_hold, at most max_model_len
  /// Room for a newcomer of that many tokens, beside `spare` blocks that stay free?
  [[nodiscard]] bool can_hold_now(std::uint32_t tokens, const PrefixHit& hit, std::uint32_t spare) const;
  [[nodiscard]] std::uint32_t missing(SeqId seq, std::uint32_t tokens) const;  // blocks_for(tokens) beyond those it has
  [[nodiscard]] Pos reach(SeqId seq, Pos wanted) const;                        // how far grow() can go now, <= wanted
  [[nodiscard]] bool holds(SeqId seq) const;
  [[nodiscard]] TableView table(SeqId seq, GroupId group) const;
  [[nodiscard]] std::uint32_t owners(BlockId block) const;  // tables that hold it
  [[nodiscard]] std::vector<BlockId> free_list() const;     // next to be taken first; allocates
  [[nodiscard]] KvCounters counters() const;
  [[nodiscard]] std::uint64_t state_hash() const;  // of all that decides what comes next

  // Planning calls.
  /// Seats a newcomer and pins its hit, which is of this very state.
  void admit(SeqId seq, const SeqTokens& tokens, const PrefixHit& hit);
  /// Own blocks for [0, end), seating the sequence if it has none.
  [[nodiscard]] bool grow(SeqId seq, Pos end);
  /// The plan will compute up to `end`: fresh blocks join ops.zeros, full ones may be found.
  void settle(SeqId seq, const SeqTokens& tokens, Pos end);

  /// Finish, abort, preemption by recompute: tail first, hashes kept. With or without an open plan.
  void release(SeqId seq);

  // What results say. Never with a plan open.
  void processed(SeqId seq, Pos end);        // computed up to `end`: windows move on
  void unpublish(SeqId seq, Pos processed);  // a step failed: blocks not filled before `processed` are not to be found
  [[nodiscard]] bool reset_prefix_cache();   // false while any block is in use

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
