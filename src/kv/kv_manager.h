// KV bookkeeping: which sequence owns which block. No bytes, threads, clock or model: server and simulator run this.
//
// A plan under construction is a stack. Planning calls write in place and journal their inverse; a mark is a height.
//   take back a victim = rewind to its mark     abandon = rewind to the bottom     commit = forget the journal
// Inverses run in reverse order, so the free list (intrusive, doubly linked, the journal keeps a node's old neighbours)
// comes back node for node. While a plan is open only its planner may look at this object.
// Planning calls need an open plan; they answer false on shortage and have then touched nothing.
//
// Two heights per sequence: planned (by commits) and processed (by results). Window blocks, and blocks of a sequence
// released with a step in flight, go free when processed. Sources of copies and loads are held until commit.
// Contiguous strategies hand out consecutive ids of the same pool, so tables, plans and kernels cannot tell them apart;
// they never share blocks: lookup finds nothing and fork copies.
//
// Threads: engine thread only. Memory: tables, nodes, journal and index slots are sized in the constructor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/ids.h"
#include "kv/block_ops.h"
#include "kv/kv_types.h"

namespace octavo {

/// Height of a plan under construction: the journal and the arrays of its block operations.
struct KvMark {
  std::size_t journal = 0, saves = 0, loads = 0, copies = 0, zeros = 0;
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
  [[nodiscard]] PrefixHit lookup(const SeqTokens& tokens) const;
  [[nodiscard]] bool can_ever_hold(std::uint32_t tokens) const;                      // refuse at the door, with numbers
  [[nodiscard]] bool can_hold_now(std::uint32_t tokens, std::uint32_t spare) const;  // admission
  [[nodiscard]] bool holds(SeqId seq) const;
  [[nodiscard]] TableView table(SeqId seq, GroupId group) const;
  [[nodiscard]] KvCounters counters() const;
  [[nodiscard]] std::uint64_t state_hash() const;

  // Planning calls.
  [[nodiscard]] bool admit(SeqId seq, const SeqTokens& tokens, const PrefixHit& hit, Pos end);  // pins, then grows
  [[nodiscard]] bool grow(SeqId seq, const SeqTokens& tokens, Pos end);  // own blocks for [0, end); publishes full ones
  [[nodiscard]] bool fork(SeqId parent, SeqId child);                    // shares; the first writer copies the tail
  [[nodiscard]] bool swap_out(SeqId seq, When when);
  [[nodiscard]] bool swap_in(SeqId seq, When when);
  void release(SeqId seq);  // finish, abort, preempt by recompute: tail first, hashes kept

  // What results say. Never with a plan open.
  void processed(SeqId seq, Pos end);             // computed up to `end`: windows move on, deferred frees happen
  void discard_unprocessed(SeqId seq);            // the step failed: unpublish what it would have filled
  void moved(const TierMove& move, bool intact);  // a kAlongside move ended; false: the slot is void, recompute
  [[nodiscard]] bool reset_prefix_cache();        // false while any block is in use
  void take_events(KvEventBatch& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
