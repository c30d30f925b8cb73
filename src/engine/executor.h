// The seam: a plan goes in, a result comes out. A GPU, a group of ranks or a cost model takes over here.
//
// A run obeys the plan and nothing else: block operations in their phases (kv/block_ops.h), then rows, then sampling
// where a row asks for it, by (request seed, position). Layer by layer, all rows store K and V before any row reads:
// rows of one plan may share blocks that the plan itself fills. Results depend on rows, never on their order.
// A row that cannot be computed comes back kFailed, and so do the rows of that plan that read what it was to write; a
// move that cannot be made comes back not intact. No exception, no wrong token; all other rows are unaffected.
//
//   local      model forward on this machine: kernels, KV store, sampler, thread pool; holds the only tensors
//   sharded    serialize(plan) to every rank, each runs its local part; rank 0 samples and returns
//   simulated  no tensors: prices rows and moves from layout and a machine profile, ends sequences as the workload says
//
// Threads: run() is called by the engine thread only and owns the machine until it returns; the plan must outlive it.
// Overlap later is submit(plan) / collect(result) beside run(), two plans alternating: the values do not change.
// Memory: result arrays are reused; activations, row lists and attention tasks come from one arena sized at start.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "kv/layout.h"
#include "sched/step_plan.h"
#include "sched/step_result.h"

namespace octavo {

class Executor {
 public:
  virtual ~Executor() = default;
  virtual void run(const StepPlan& plan, StepResult& result) = 0;
};

/// What a step costs, in the terms that every executor shares; the roofline and the step record read it, too.
struct StepCost {
  std::uint64_t tokens = 0;          // through the weights
  std::uint64_t logits_rows = 0;     // through the output matrix
  std::uint64_t kv_read_tokens = 0;  // attended (query, key) pairs, windows counted as windows
  std::uint64_t moved_bytes = 0;     // copies count twice: read and write
};

/// `layouts`: one per group; groups of one pool have equal block bytes. `windows`: 0 = full attention.
struct GroupCost {
  PoolId pool;
  std::uint32_t window_tokens;
  KvLayout layout;
};
[[nodiscard]] StepCost cost_of(const StepPlan& plan, std::span<const GroupCost> groups);

/// Ends a simulated sequence: the workload knows how long its answer is. Called once per sampled row.
class SimulatedAnswers {
 public:
  virtual ~SimulatedAnswers() = default;
  virtual bool ends_with(SeqId seq, Pos position) = 0;
};

class Model;    // weights and forward
class KvStore;  // the bytes, and the tiers behind them
class Sampler;  // parameters and state by SeqId
class Ranks;    // broadcast of bytes, exchange of activations
struct MachineProfile;

std::unique_ptr<Executor> make_local_executor(Model&, KvStore&, Sampler&);
std::unique_ptr<Executor> make_sharded_executor(std::unique_ptr<Executor> local, Ranks&);
std::unique_ptr<Executor> make_simulated_executor(const MachineProfile&, std::span<const GroupCost>, SimulatedAnswers&);

}  // namespace octavo
