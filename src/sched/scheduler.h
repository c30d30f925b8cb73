// The scheduler: queues + KV bookkeeping + one token budget -> StepPlan. Server and simulator run this very object.
//
//   while (scheduler.has_work()) {
//     scheduler.expire(now);
//     if (!scheduler.schedule(plan)) break;          // nothing has changed yet
//     scheduler.commit(plan);                        // or abandon(): no trace
//     executor.run(plan, result);
//     scheduler.apply(result);                       // tokens appended, ended sequences released
//     for (SeqId id : scheduler.ended()) ...         // why they ended: find(id)->finish; valid until the next commit
//   }
//
// How a plan is made (docs/scheduling.md):
//   1. Floor. Running sequences, by rank, take the blocks for one token each. On a shortage the last by rank is
//      preempted; it is behind the cursor or at it, so nothing planned is taken back.
//   2. Spend. Running and waiting together, by rank, take tokens while the budget lasts; one token of it stays reserved
//      for each running sequence still to come. Chunks shrink to the blocks there are. A waiting sequence needs a seat
//      and room for all its known tokens, beside what running prompts still miss; where the policy allows it preempts
//      those that rank behind it, and gives them back if it still cannot start. Then, nobody behind it starts either.
//      Who was swapped out is loaded alongside the rows of this plan, and has its next row in the next one.
// Full blocks are published as their row is planned; from there on nothing takes the row back.
//
// The scheduler's own deltas are the plan itself (rows, admitted, preempted): schedule() only reads sequences, commit()
// walks the lists. Order of calls: at most one plan is open; add, finish, expire and apply never run while one is.
// Threads: engine thread only. Time comes in as an argument.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"
#include "kv/kv_manager.h"
#include "sched/policy.h"
#include "sched/scheduler_config.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"
#include "sched/step_result.h"

namespace octavo {

/// Why add() said no, with the numbers that the client is told.
struct Refusal {
  enum class Why : std::uint8_t {
    kNone,
    kTooLong,    // asked: prompt + max_new_tokens; limit: max_model_len
    kNeverFits,  // asked: tokens it would hold; limit: the most that the pool holds
    kQueueFull,  // asked: waiting with this one; limit: max_queued
  };
  Why why = Why::kNone;
  std::uint64_t asked = 0;
  std::uint64_t limit = 0;
};

/// Since the start, by committed plans and applied results.
struct SchedulerCounters {
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  std::uint64_t computed_tokens = 0;  // through the model, recomputed ones included
  std::uint64_t prompt_tokens = 0;    // of those, prompt
  std::uint64_t sampled_tokens = 0;
  std::uint64_t queried_tokens = 0;  // looked up in the prefix cache, once per sequence
  std::uint64_t cached_tokens = 0;   // not computed, but taken from the prefix cache
  std::uint64_t forked_tokens = 0;   // alike, shared by the sequence they forked from
  std::uint64_t admitted = 0;        // resumed ones included
  std::uint64_t preempted = 0;       // swapped ones included
  std::uint64_t swapped = 0;
  std::uint64_t lost_tokens = 0;      // computed, then given up by preemption
  std::uint64_t restored_tokens = 0;  // computed, kept in host memory, and loaded again
  std::uint64_t failed_moves = 0;
  std::uint64_t finished = 0;
};

class Scheduler {
 public:
  /// `policy` and `kv` outlive the scheduler. kv's max_seqs is at least max_num_seqs.
  Scheduler(const SchedulerConfig& config, const Policy& policy, KvManager& kv);
  ~Scheduler();

  /// `id` is new; `prompt` is not empty. Nothing is kept of a refused one.
  [[nodiscard]] Refusal add(SeqId id, const SeqLimits& limits, std::span<const TokenId> prompt, Micros now);
  /// The same with the prompt and salt of `parent`, which has not ended: its prompt blocks are shared where they can
  /// be.
  [[nodiscard]] Refusal fork(SeqId id, SeqId parent, const SeqLimits& limits, Micros now);
  void finish(SeqId id, Finish why);  // abort, stop string, error; unknown or ended ids are ignored
  void expire(Micros now);            // ends all whose deadline has passed

  /// False: nothing to do, no plan is open. `plan` keeps its capacity. `budget`: the most tokens of this step; never
  /// less than one for each running sequence, nor more than max_num_batched_tokens.
  [[nodiscard]] bool schedule(StepPlan& plan, std::uint32_t budget = ~0U);
  void commit(const StepPlan& plan);
  void abandon();
  void apply(const StepResult& result);

  [[nodiscard]] bool has_work() const;
  [[nodiscard]] std::uint32_t num_running() const;
  [[nodiscard]] std::uint32_t num_waiting() const;
  [[nodiscard]] std::span<const Sequence* const> running() const;  // by rank; valid until the next call that changes it
  [[nodiscard]] std::span<const Sequence* const> waiting() const;  // likewise
  [[nodiscard]] const Sequence* find(SeqId id) const;  // nullptr once it was reported in a committed plan's `finished`
  [[nodiscard]] std::span<const SeqId> ended() const;  // since the last commit: the next plan's `finished`
  [[nodiscard]] const SchedulerCounters& counters() const;
  [[nodiscard]] std::uint64_t state_hash() const;  // queues, sequences, KV: equal before schedule and after abandon

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
