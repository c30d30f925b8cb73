// Runs step plans on this machine: block operations, the forward pass, logits, samples. Holds no sequence state; what a
// row needs is in the plan, what sampling needs is in the SamplingTable.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/executor.h"
#include "engine/sampling_table.h"
#include "kv/kv_guard.h"
#include "kv/kv_host_store.h"
#include "kv/kv_store.h"
#include "model/forward.h"

namespace octavo {

class LocalExecutor final : public Executor {
 public:
  /// `host` may be nullptr: then no plan moves blocks there.
  LocalExecutor(Model& model, KvStore& store, KvHostStore* host, SamplingTable& sampling, ThreadPool& pool,
                const ForwardLimits& limits, std::uint32_t max_rows);
  void run(const StepPlan& plan, StepResult& result) override;

  /// Sees every row of raw logits before it is used, in the engine's thread: what hashes and comparisons are made of.
  using LogitsObserver = std::function<void(SeqId seq, Pos position, std::span<const float> logits)>;
  void observe_logits(LogitsObserver observer) { observer_ = std::move(observer); }

  /// Debug builds: free blocks that no lookup finds are poisoned at the next step. Whose row it runs must not have
  /// ended.
  void poison_freed(std::function<std::vector<BlockId>()> nobodys) { nobodys_ = std::move(nobodys); }

 private:
  /// A token of the batch whose logits are wanted.
  struct LogitRow {
    std::uint32_t row;  // in the plan
    Pos position;       // of the token
    bool samples;       // draws the next token; else it scores the prompt
  };

  void run_rows(const StepPlan& plan, StepResult& result);
  void list_batch(const StepPlan& plan);
  void guard_rows(const StepPlan& plan);
  void list_logits(const StepPlan& plan);
  void serve_logits(const StepPlan& plan, StepResult& result);

  Model& model_;
  KvStore& store_;
  KvHostStore* host_;
  SamplingTable& sampling_;
  ThreadPool& pool_;
  std::uint32_t max_logit_rows_;
  LogitsObserver observer_;
  std::optional<KvGuard> guard_;  // if kGuarded
  std::function<std::vector<BlockId>()> nobodys_;
  std::vector<std::uint32_t> positions_;     // [m]
  std::vector<KvRow> kv_rows_;               // [groups, rows]
  std::vector<std::uint32_t> logit_tokens_;  // indices into the batch's tokens
  std::vector<LogitRow> logit_rows_;         // like logit_tokens_
};

}  // namespace octavo
