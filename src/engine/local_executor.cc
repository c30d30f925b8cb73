#include "engine/local_executor.h"

#include <algorithm>
#include <string>

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
  if (kGuarded) guard_.emplace(store, host == nullptr ? 0 : host->num_slots());
}

void LocalExecutor::run(const StepPlan& plan, StepResult& result) {
  const FloatMode mode;
  result.clear();
  result.step = plan.step;
  OCTAVO_CHECK(host_ != nullptr || (plan.ops.saves.empty() && plan.ops.loads.empty()), "moves have a host pool");
  if (!plan.ops.saves.empty()) host_->save(plan.ops.saves, pool_);
  store_.copy(plan.ops.copies);
  store_.zero(plan.ops.zeros);
  if (guard_) guard_->follow(plan.ops);
  if (guard_ && nobodys_) guard_->bury(nobodys_());
  if (!plan.ops.loads.empty()) host_->start_loads(plan.ops.loads);
  if (!plan.rows.empty()) run_rows(plan, result);
  if (!plan.ops.loads.empty()) host_->finish_loads(result.failed_moves);
}

void LocalExecutor::run_rows(const StepPlan& plan, StepResult& result) {
  list_batch(plan);
  if (guard_) guard_rows(plan);
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

void LocalExecutor::guard_rows(const StepPlan& plan) {
  std::vector<TokenId> known;
  const auto guarded = [&](std::size_t i) {  // i: of kv_rows_, exactly what attention reads
    const KvRow& kv = kv_rows_[i];
    const StepRow& row = plan.rows[i % plan.rows.size()];
    const SequenceSampling& sampling = sampling_.at(row.seq);
    known = sampling.request->prompt;
    known.insert(known.end(), sampling.output.begin(), sampling.output.end());
    OCTAVO_CHECK(
        row.end().value <= known.size() &&
            std::ranges::equal(plan.tokens_of(row), std::span(known).subspan(row.first_pos.value, row.num_tokens)),
        "a row computes what its sequence says");
    known.resize(row.end().value);
    const GroupId group{static_cast<std::uint32_t>(i / plan.rows.size())};
    return KvGuard::Row{row.seq, group, kv.first_pos, kv.first_page, {kv.blocks, kv.num_blocks}, known};
  };
  for (std::size_t i = 0; i < kv_rows_.size(); ++i) guard_->store(guarded(i));
  for (std::size_t i = 0; i < kv_rows_.size(); ++i) {
    const std::string fault = guard_->find_fault(guarded(i));
    OCTAVO_CHECK(fault.empty(), fault.c_str());
  }
  OCTAVO_CHECK(guard_->null_block_is_zero(), "the null block is never written");
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
