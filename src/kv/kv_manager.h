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
//
// Memory strategies (KvConfig::memory) differ in which ids they hand out, and when. Tables, plans, kernels and bits are
// the same. Runs are never shared and keep what is behind a window; a run that moves is copied by the plan.
//
// Shared blocks are written by nobody: who would write into one gets a copy first (grow). A plan's copies read blocks
// that nobody gets until it commits.
//
// Swapping keeps a sequence's blocks in slots of a host pool, with books of their own. swap_out and swap_in name the
// moves in the plan's operations; the executor does them.
// Threads: engine thread only. Memory: nodes, tables and index are sized in the constructor; the journal keeps its
// capacity.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "kv/block_ops.h"
#include "kv/event_log.h"
#include "kv/kv_types.h"

namespace octavo {

/// Height of a plan under construction: of everything that planning appends to.
struct KvMark {
  std::size_t journal = 0, pending = 0, held = 0, host_held = 0;
  EventLog::Mark events;
  std::size_t saves = 0, copies = 0, zeros = 0, loads = 0;
  std::uint64_t moved_runs = 0;
};

class KvManager {
 public:
  /// What its books take once every block of the pool was in use. Tables grow as sequences do.
  [[nodiscard]] static std::uint64_t bytes(const KvConfig& config);

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
  [[nodiscard]] std::uint32_t missing(SeqId seq, std::uint32_t tokens) const;  // blocks_for(tokens) beyond those it has
  [[nodiscard]] Pos reach(SeqId seq, Pos wanted) const;                        // how far grow() should get, <= wanted
  [[nodiscard]] Pos owned(SeqId seq, Pos wanted) const;                        // how far its blocks go, <= wanted
  [[nodiscard]] bool holds(SeqId seq) const;
  [[nodiscard]] bool swapped(SeqId seq) const;  // it holds host slots
  [[nodiscard]] bool can_fork(SeqId parent,
                              Pos shared) const;  // its blocks still hold all that a query at `shared` reads
  [[nodiscard]] TableView table(SeqId seq, GroupId group) const;
  [[nodiscard]] std::uint32_t owners(BlockId block) const;  // tables that hold it
  [[nodiscard]] std::vector<BlockId> free_list() const;     // next to be taken first; allocates
  [[nodiscard]] std::vector<BlockId> nobodys() const;       // free blocks that no lookup finds; allocates
  [[nodiscard]] KvCounters counters() const;
  [[nodiscard]] KvUsage usage() const;             // between plans; walks all seats
  [[nodiscard]] std::uint64_t state_hash() const;  // of all that decides what comes next

  // Planning calls. A newcomer is seated where there is room for all its `tokens` beside `spare` blocks that stay free.
  /// Pins its hit, which is of this very state.
  [[nodiscard]] bool admit(SeqId seq, const SeqTokens& tokens, const PrefixHit& hit, std::uint32_t spare);
  /// Shares the parent's blocks of [0, shared), the last one until somebody writes into it.
  [[nodiscard]] bool fork(SeqId parent, SeqId seq, Pos shared, std::uint32_t tokens, std::uint32_t spare);
  /// Own blocks for [0, end), none of them shared from the next position on; seats the sequence if it has none.
  [[nodiscard]] bool grow(SeqId seq, Pos end);
  /// Keeps all that is computed in host slots, and gives the blocks back.
  [[nodiscard]] bool swap_out(SeqId seq);
  /// The way back. No row of this plan may use the blocks.
  [[nodiscard]] bool swap_in(SeqId seq, std::uint32_t tokens, std::uint32_t spare);
  /// The plan will compute up to `end`: fresh blocks join ops.zeros, full ones may be found.
  void settle(SeqId seq, const SeqTokens& tokens, Pos end);

  /// Finish, abort, preemption by recompute: tail first, hashes kept; host slots too. With or without an open plan.
  void release(SeqId seq);

  // What results say. Never with a plan open.
  void processed(SeqId seq, Pos end);        // computed up to `end`: windows move on
  void unpublish(SeqId seq, Pos processed);  // a step failed: blocks not filled before `processed` are not to be found
  [[nodiscard]] bool reset_prefix_cache();   // false while any block is in use
  void take_events(KvEvents& out);           // all since the last call, if KvConfig::events
  /// For tests: the calls-th next call that would take blocks answers false; 0: none will. Returns how many calls were
  /// left of the last one; 0: it has happened.
  std::uint64_t refuse_after(std::uint64_t calls);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
