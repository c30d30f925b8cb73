// The walk that makes one plan, see sched/scheduler.h. It reads sequences and writes the plan and, through the journal
// of its open plan, the KV bookkeeping. Nothing else changes.
//
// Victims are always the last by rank of those still running, so they are the tail of `running`, and one number says
// who they are. They lose their blocks before any row of theirs is planned: the floor is taken before the first row,
// and a waiting sequence preempts only behind the cursor.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_manager.h"
#include "sched/policy.h"
#include "sched/scheduler_config.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace octavo {

class StepPlanner {
 public:
  StepPlanner(const SchedulerConfig& config, const Policy& policy, KvManager& kv, const Sequences& sequences)
      : config_(config), policy_(policy), kv_(kv), sequences_(sequences) {}

  /// Both queues are sorted by rank. kv's plan is open with `plan.ops`; `plan` is cleared and has its header.
  void make(std::span<Sequence* const> running, std::span<Sequence* const> waiting, std::uint32_t budget,
            StepPlan& plan);

 private:
  void take_floor();
  void spend(std::span<Sequence* const> waiting);
  void extend(const Sequence& q);
  [[nodiscard]] bool start(const Sequence& q);
  [[nodiscard]] bool make_room(const Sequence& q, Admission& admission);
  [[nodiscard]] bool take_room(const Sequence& q, Admission& admission);
  [[nodiscard]] const Sequence* parent_of(const Sequence& q) const;
  void append_row(const Sequence& q, std::uint32_t begin, std::uint32_t count);

  void preempt_last();
  [[nodiscard]] bool swaps(const Sequence& victim) const;
  [[nodiscard]] bool has_seat() const { return survivors_ + admitted_.size() < config_.max_num_seqs; }
  [[nodiscard]] std::uint32_t spare_blocks() const;
  [[nodiscard]] std::uint32_t chunk(std::uint32_t todo, std::size_t reserved) const;

  const SchedulerConfig& config_;
  const Policy& policy_;
  KvManager& kv_;
  const Sequences& sequences_;

  // Of the walk.
  StepPlan* plan_ = nullptr;
  std::span<Sequence* const> running_;
  std::size_t survivors_ = 0;  // running_[survivors_ ...] are victims
  std::size_t cursor_ = 0;     // running_[cursor_ ... survivors_) have no row yet, and one token of the budget each
  std::uint32_t budget_ = 0;
  std::vector<const Sequence*> admitted_;
};

}  // namespace octavo
