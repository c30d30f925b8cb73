#include "engine/local_executor.h"

#include <algorithm>

#include "base/check.h"
#include "base/float_mode.h"

namespace octavo {

LocalExecutor::LocalExecutor(Model& model, KvStore& store, KvHostStore* host, SamplingTable& sampling, ThreadPool& pool,
                             const ForwardLimits& limits, std::uint32_t max_rows)
    : model_(model),
      store_(store),
      host_(host),
      sampling_(sampling),
      pool_(pool),
      max_logit_rows_(limits.max_logit_rows) {
  positions_.reserve(limits.max_tokens);
  kv_rows_.reserve(std::size_t{max_rows} * store.groups().groups.size());
  logit_tokens_.reserve(limits.max_tokens);
  logit_rows_.reserve(limits.max_tokens);
}

void LocalExecutor::run(const StepPlan& plan, StepResult& result) {
  const FloatMode mode;
  result.clear();
  result.step = plan.step;
  OCTAVO_CHECK(host_ != nullptr || (plan.ops.saves.empty() && plan.ops.loads.empty()), "moves have a host pool");
  if (!plan.ops.saves.empty()) host_->save(plan.ops.saves, pool_);
  store_.copy(plan.ops.copies);
  store_.zero(plan.ops.zeros);
  if (!plan.ops.loads.empty()) host_->start_loads(plan.ops.loads);
  if (!plan.rows.empty()) run_rows(plan, result);
  if (!plan.ops.loads.empty()) host_->finish_loads(result.failed_moves);
}

void LocalExecutor::run_rows(const StepPlan& plan, StepResult& result) {
  list_batch(plan);
  model_.forward({plan.tokens, positions_, kv_rows_, static_cast<std::uint32_t>(plan.rows.size())});
  list_logits(plan);
  serve_logits(plan, result);
}

void LocalExecutor::list_batch(const StepPlan& plan) {
  positions_.clear();
  kv_rows_.clear();
  for (const StepRow& row : plan.rows) {
    for (std::uint32_t i = 0; i < row.num_tokens; ++i) positions_.push_back(row.first_pos.value + i);
  }
  for (std::uint32_t g = 0; g < plan.num_groups; ++g) {
    for (std::size_t r = 0; r < plan.rows.size(); ++r) {
      const StepRow& row = plan.rows[r];
      const RowTable& table = plan.table_of(r, {g});
      kv_rows_.push_back({plan.blocks_of(table).data(), table.first_page, table.num_blocks, row.first_pos.value,
                          row.num_tokens, row.tokens_begin});
    }
  }
}

void LocalExecutor::list_logits(const StepPlan& plan) {
  logit_tokens_.clear();
  logit_rows_.clear();
  for (std::uint32_t r = 0; r < plan.rows.size(); ++r) {
    const StepRow& row = plan.rows[r];
    for (std::uint32_t i = row.num_tokens - row.num_logits; i < row.num_tokens; ++i) {
      const bool samples = i >= row.num_tokens - row.num_samples;
      logit_tokens_.push_back(row.tokens_begin + i);
      logit_rows_.push_back({r, row.first_pos + i, samples});
    }
  }
}

void LocalExecutor::serve_logits(const StepPlan& plan, StepResult& result) {
  for (const StepRow& row : plan.rows) {
    const auto begin = static_cast<std::uint32_t>(result.tokens.size());
    result.rows.push_back({row.seq, row.end(), begin, row.num_samples, RowEnd::kGoesOn});
    result.tokens.resize(begin + row.num_samples);
  }
  for (std::size_t begin = 0; begin < logit_tokens_.size(); begin += max_logit_rows_) {
    const std::size_t count = std::min<std::size_t>(max_logit_rows_, logit_tokens_.size() - begin);
    const std::span<float> logits = model_.logits(std::span(logit_tokens_).subspan(begin, count));
    const std::size_t vocab = logits.size() / count;
    if (observer_) {
      for (std::size_t i = 0; i < count; ++i) {
        const LogitRow& row = logit_rows_[begin + i];
        observer_(plan.rows[row.row].seq, row.position, logits.subspan(i * vocab, vocab));
      }
    }
    // Prompt scores of one sequence are appended to one list, so they go in order; samples of different rows do not.
    for (std::size_t i = 0; i < count; ++i) {
      const LogitRow& row = logit_rows_[begin + i];
      if (!row.samples &&
          !sampling_.score_prompt(plan.rows[row.row].seq, row.position.value + 1, logits.subspan(i * vocab, vocab))) {
        result.rows[row.row].end = RowEnd::kFailed;
      }
    }
    pool_.run(static_cast<std::uint32_t>(count), [&](std::uint32_t i, std::uint32_t worker) {
      const LogitRow& row = logit_rows_[begin + i];
      if (!row.samples) return;
      RowResult& out = result.rows[row.row];
      const SamplingTable::Next next =
          sampling_.sample(out.seq, row.position + 1, logits.subspan(i * vocab, vocab), worker);
      result.tokens[out.tokens_begin] = next.token;
      if (next.ends) out.end = RowEnd::kStopped;
      if (next.failed) out.end = RowEnd::kFailed;
    });
  }
  for (RowResult& row : result.rows) {
    if (row.end == RowEnd::kFailed) row.num_tokens = 0;
  }
}

}  // namespace octavo
