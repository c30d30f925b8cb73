// The scheduler and KV manager that serve, with an executor that computes nothing and a clock that ticks once a step.
// Threads: one.
#pragma once
#include <cstdint>
#include <vector>

#include "kv/kv_manager.h"
#include "sched/policy.h"
#include "sched/scheduler.h"

namespace octavo {

class FakeServer {
 public:
  FakeServer(const SchedulerConfig& config, const KvConfig& kv) : kv_(kv), scheduler_(config, policy_, kv_) {}

  /// No two prompts share a token sequence; the answer has exactly `output_tokens`. Aborts on a refusal.
  void add(std::uint32_t prompt_tokens, std::uint32_t output_tokens);

  /// One step; false: there is nothing to do.
  bool step();

  // A step in its parts, for those who time them.
  [[nodiscard]] bool plan();
  void compute();
  void apply() { scheduler_.apply(result_); }

  [[nodiscard]] const Scheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] const KvManager& kv() const { return kv_; }

 private:
  Fcfs policy_;
  KvManager kv_;
  Scheduler scheduler_;
  StepPlan plan_;
  StepResult result_;
  std::vector<TokenId> prompt_;
  Micros now_{};
  std::uint64_t last_seq_ = 0;
};

}  // namespace octavo
