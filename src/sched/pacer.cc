#include "sched/pacer.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace octavo {

Pacer::Pacer(const StepTime& time, const BudgetLimits& limits, std::uint32_t max_seqs)
    : time_(time), budget_(limits), max_seqs_(max_seqs) {
  prompts_.reserve(max_seqs + std::size_t{1});
}

std::uint32_t Pacer::budget(const Scheduler& scheduler, const KvManager& kv, Micros now) {
  prompts_.clear();
  StepWork streams;
  std::uint32_t num_streams = 0;
  // Running and waiting together, by rank; no more of them than there are seats, and one that might preempt.
  const std::span<const Sequence*const> running = scheduler.running(), waiting = scheduler.waiting();
  std::size_t r = 0, w = 0;
  const std::size_t seats = std::max<std::size_t>(max_seqs_ - running.size(), 1);
  while (r < running.size() || (w < waiting.size() && w < seats)) {
    const bool more_waiting = w < waiting.size() && w < seats;
    const bool take_running = r < running.size() && (!more_waiting || running[r]->rank < waiting[w]->rank);
    const Sequence& s = take_running ? *running[r++] : *waiting[w++];
    if (take_running && s.todo() == 1 && s.outputs() > 0) {
      streams += time_.row(s.computed, 1, 1);
      ++num_streams;
    } else if (s.todo() > 0) {
      // Who comes after the first waits for its own turn: looking up all of them in every step would cost too much.
      const bool next = !take_running && w == 1 && !s.limits.prompt_logits;
      const std::uint32_t cached = next ? kv.lookup(s.tokens()).num_tokens : 0;
      prompts_.push_back({s.computed + cached, s.todo() - cached, take_running, now - s.arrival});
    }
  }
  return budget_.choose(time_, num_streams, streams, prompts_);
}

void Pacer::observe(const StepPlan& plan, Nanos took) {
  if (plan.rows.empty()) return;
  StepWork work;
  for (const StepRow& row : plan.rows) work += time_.row(row.first_pos.value, row.num_tokens, row.num_logits);
  time_.observe(work, took);
}

}  // namespace octavo
