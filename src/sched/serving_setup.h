// How the objects that serve are set up from what the user asked and what was decided about memory and time: one place,
// for the engine and for the simulator.
//
// Values only. Threads: any.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kv/kv_types.h"
#include "octavo/config.h"
#include "sched/budget.h"
#include "sched/policy.h"
#include "sched/scheduler_config.h"
#include "sched/step_time.h"

namespace octavo {

/// What was decided at load.
struct ServingFacts {
  std::vector<GroupSpec> groups;
  std::uint32_t num_blocks = 0;  // without the null block
  std::uint32_t host_blocks = 0;
  std::uint32_t max_model_len = 0;
  std::uint32_t max_num_batched_tokens = 0;
  std::string fingerprint;  // of model and numerics
  StepCosts costs;
  Nanos copy_per_block{};
};

/// Asked for, or the default: on where memory is paged and kept.
[[nodiscard]] bool prefix_caching_on(const EngineConfig& config);

/// max_num_batched_tokens: as given, or measured: by `time`, at most `cap`, never below max_num_seqs.
[[nodiscard]] AutoBudget settle_budget(const EngineConfig& config, const StepTime& time, std::uint32_t cap);

[[nodiscard]] KvConfig kv_config(const EngineConfig& config, const ServingFacts& facts);
[[nodiscard]] SchedulerConfig scheduler_config(const EngineConfig& config, const ServingFacts& facts);
[[nodiscard]] BudgetLimits budget_limits(const EngineConfig& config, const ServingFacts& facts);
[[nodiscard]] std::unique_ptr<Policy> make_policy(const EngineConfig& config);

}  // namespace octavo
