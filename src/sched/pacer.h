// Steps kept short enough for the streams that run: reads the scheduler's queues before a step, times it afterwards.
// A simulator uses it with its own clock and StepTime. Threads: the engine thread. No allocation.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "kv/kv_manager.h"
#include "sched/budget.h"
#include "sched/scheduler.h"
#include "sched/step_time.h"

namespace octavo {

class Pacer {
 public:
  /// `max_seqs`: the scheduler's max_num_seqs.
  Pacer(const StepTime& time, const BudgetLimits& limits, std::uint32_t max_seqs);

  /// For Scheduler::schedule(). `kv`, the scheduler's, says what of the next prompt is cached: it starts that deep.
  [[nodiscard]] std::uint32_t budget(const Scheduler& scheduler, const KvManager& kv, Micros now);
  /// The committed plan ran for so long.
  void observe(const StepPlan& plan, Nanos took);

  [[nodiscard]] const StepTime& time() const { return time_; }

 private:
  StepTime time_;
  StepBudget budget_;
  std::uint32_t max_seqs_;
  std::vector<PromptLeft> prompts_;
};

}  // namespace octavo
