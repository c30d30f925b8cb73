// The seam: a plan goes in, a result comes out. A GPU, a group of ranks or a cost model takes over here.
//
// A run obeys the plan and nothing else: block operations (kv/block_ops.h), then rows, then logits and samples where a
// row asks for them, by (request seed, choice, position). Layer by layer, all rows store K and V before any row reads:
// rows of one plan may share blocks that the plan itself fills. Results depend on rows, never on their order.
// A row that cannot be computed comes back kFailed, and so do the rows of that plan that read what it was to write. No
// exception, no wrong token; all other rows are unaffected. State of `finished` sequences is dropped first.
//
// Threads: run() is called by the engine thread only and owns the machine until it returns; the plan must outlive it.
// Memory: result arrays are reused.
#pragma once
#include "sched/step_plan.h"
#include "sched/step_result.h"

namespace octavo {

class Executor {
 public:
  virtual ~Executor() = default;
  virtual void run(const StepPlan& plan, StepResult& result) = 0;
};

}  // namespace octavo
