#include "engine/step_log.h"

#include <algorithm>

namespace octavo {
namespace {

std::uint32_t count(const auto& list) { return static_cast<std::uint32_t>(list.size()); }

}  // namespace

StepRecord record_of(const StepPlan& plan, const StepResult& result, const StepFacts& facts) {
  StepRecord r;
  r.step = plan.step.value;
  r.begin_us = facts.begin.count(), r.run_us = facts.run.count(), r.duration_us = facts.duration.count();
  r.rows = count(plan.rows), r.tokens = count(plan.tokens), r.budget = facts.budget;
  for (const StepRow& row : plan.rows) {
    ++(row.num_prompt > 0 ? r.prompt_rows : r.decode_rows);
    r.prompt_tokens += row.num_prompt;
  }
  for (const RowResult& row : result.rows) {
    r.sampled_tokens += row.num_tokens;
    if (row.end == RowEnd::kFailed) ++r.failed_rows;
  }
  r.admitted = count(plan.admitted), r.lookup_tokens = facts.lookup_tokens;
  for (const Admission& a : plan.admitted) {
    r.resumed += a.resumed;
    (a.resumed != 0 ? r.recovered_tokens : r.cached_tokens) += a.cached_tokens;
    r.forked_tokens += a.forked_tokens, r.recovered_tokens += a.restored_tokens;
  }
  for (const Preemption& p : plan.preempted) {
    ++(p.saved_tokens > 0 ? r.preempted_swap : r.preempted_recompute);
    r.lost_tokens += p.lost_tokens;
  }
  r.finished = count(plan.finished);
  r.running = facts.running, r.waiting = facts.waiting;
  r.blocks_free = facts.kv.blocks_free, r.blocks_cached = facts.kv.blocks_cached;
  r.blocks_used = facts.kv.blocks_total - facts.kv.blocks_free;
  r.host_used = facts.kv.host_total - facts.kv.host_free;
  r.saves = count(plan.ops.saves), r.loads = count(plan.ops.loads);
  r.copies = count(plan.ops.copies), r.zeros = count(plan.ops.zeros);
  return r;
}

StepLog::StepLog(std::size_t steps, std::size_t rows) : entries_(steps), rows_(rows) {}

void StepLog::add(const StepRecord& record, std::span<const BatchRow> batch) {
  const std::uint64_t number = entries_written_.load(std::memory_order_relaxed);
  const std::uint64_t first_row = rows_begun_.load(std::memory_order_relaxed);
  // Told before it is done: a reader that does not see the claim did not see the new rows either.
  rows_begun_.fetch_add(batch.size(), std::memory_order_acq_rel);
  if (batch.size() <= rows_.size()) {
    for (std::size_t i = 0; i < batch.size(); ++i) rows_[(first_row + i) % rows_.size()].store(batch[i]);
  }
  entries_[number % entries_.size()].store({record, number, first_row});
  entries_written_.store(number + 1, std::memory_order_release);
}

std::vector<RecentStep> StepLog::recent(std::size_t most) const {
  const std::uint64_t end = entries_written_.load(std::memory_order_acquire);
  const std::uint64_t kept = std::min<std::uint64_t>({end, entries_.size(), most});
  std::vector<RecentStep> out;
  out.reserve(kept);
  for (std::uint64_t number = end - kept; number < end; ++number) {
    const Entry entry = entries_[number % entries_.size()].load();
    if (entry.number == number) out.push_back({entry.record, batch_of(entry)});
  }
  return out;
}

std::vector<BatchRow> StepLog::batch_of(const Entry& entry) const {
  std::vector<BatchRow> batch;
  batch.reserve(entry.record.rows);
  if (entry.record.rows > rows_.size()) return batch;
  for (std::uint32_t i = 0; i < entry.record.rows; ++i) {
    batch.push_back(rows_[(entry.first_row + i) % rows_.size()].load());
  }
  const bool whole = rows_begun_.load(std::memory_order_acquire) <= entry.first_row + rows_.size();
  if (!whole) batch.clear();
  return batch;
}

}  // namespace octavo
