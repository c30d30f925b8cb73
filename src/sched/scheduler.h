// The scheduler: queues + KV bookkeeping + one token budget -> StepPlan. Server and simulator run this very object.
//
//   while (scheduler.has_work()) {
//     if (!scheduler.schedule(now, plan)) wait;      // nothing has changed yet
//     scheduler.commit(plan);                        // or abandon(): no trace
//     executor.run(plan, result);
//     scheduler.apply(result, now);                  // tokens appended, finished released
//   }
//
// How a plan is made: one walk over running by rank, then waiting by rank (none that ranks behind a victim), spending
// the budget. Running sequences behind the cursor keep one token each in reserve: no long prompt freezes a stream. On a
// shortage the victim is the last by rank; since the walk goes by rank too, a victim of the first pass is always behind
// the cursor. One already in the plan (a waiting sequence preempts it) is taken back by rewinding plan and KV to
// its mark and walking on from there without it: whatever leaned on it, a shared block for one, is redone, not patched.
// Places taken in vain (the waiting one still does not fit) are given back the same way, and the walk ends before it.
//
// The scheduler's own deltas are the plan itself (rows, admitted, preempted): schedule() only reads sequences, commit()
// walks the lists. Order of calls: at most one plan is open; add, abort and apply never run while one is.
// Committed plans may be ahead of results (computed > processed): that is all that overlap needs later.
// Threads: engine thread only. Memory: queues, marks and victims are reserved for max_num_seqs + max_queued at start.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"
#include "kv/kv_manager.h"
#include "sched/policy.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"
#include "sched/step_result.h"

namespace octavo {

enum class Batching : std::uint8_t { kContinuous, kStatic };  // kStatic: the batch closes until its longest ends
enum class PreemptMode : std::uint8_t { kRecompute, kSwap, kCheapest };

struct SchedulerConfig {
  std::uint32_t max_num_seqs = 256;
  std::uint32_t max_num_batched_tokens = 2048;     // the budget of a step, >= max_num_seqs
  std::uint32_t long_prefill_token_threshold = 0;  // 0 off: most tokens of one sequence in one step
  std::uint32_t max_model_len = 4096;
  std::uint32_t max_queued = 4096;
  std::uint32_t watermark_blocks = 0;  // kept free by admissions while something runs
  Batching batching = Batching::kContinuous;
  PreemptMode preempt = PreemptMode::kRecompute;
};

/// Why add() said no, with the numbers that the client is told.
struct Refusal {
  enum class Why : std::uint8_t { kNone, kTooLong, kNeverFits, kQueueFull };
  Why why = Why::kNone;
  std::uint64_t asked = 0;
  std::uint64_t limit = 0;
};

/// One line of the trace ring: a step in numbers.
struct StepRecord {
  StepId step;
  std::uint32_t running, waiting, rows, tokens, prompt_tokens, cached_tokens, admitted, preempted, blocks_free;
};

class Scheduler {
 public:
  Scheduler(const SchedulerConfig& config, const Policy& policy, KvManager& kv);
  ~Scheduler();

  [[nodiscard]] Refusal add(SeqId id, const SeqLimits& limits, std::span<const TokenId> prompt, Micros now);
  void fork(SeqId parent, SeqId child, Micros now);  // parallel samples share their prompt
  void finish(SeqId id, Finish why);                 // abort, stop string; freed once no step is in flight
  void set_budget(std::uint32_t tokens);             // latency target steers the budget; never changes bits

  [[nodiscard]] bool schedule(Micros now, StepPlan& plan);  // false: nothing to do. `plan` keeps its capacity
  void commit(const StepPlan& plan);
  void abandon(const StepPlan& plan);
  void apply(const StepResult& result, Micros now);

  [[nodiscard]] bool has_work() const;
  [[nodiscard]] const Sequence* find(SeqId id) const;  // until it is reported in StepPlan::finished
  [[nodiscard]] StepRecord record() const;             // of the last committed step
  [[nodiscard]] std::uint64_t state_hash() const;      // queues, sequences, KV: equal before schedule and after abandon

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
