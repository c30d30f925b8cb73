// Drives scheduler, KV and executor step by step without a thread, and keeps a hash of every row of logits: the tool of
// the invariance and oracle tests.
#pragma once
#include <xxhash.h>

#include <algorithm>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/resources.h"

namespace octavo::testing {

/// What one choice of one request came to.
struct Outcome {
  std::vector<TokenId> tokens;                    // generated
  std::map<std::uint32_t, std::uint64_t> logits;  // by position: hash of the full row that was computed there
  std::vector<TokenLogprob> logprobs, prompt_logprobs;
  std::uint32_t preemptions = 0;
  std::uint32_t cached_tokens = 0;
  Finish finish = Finish::kNone;
  friend bool same_bits(const Outcome& a, const Outcome& b) { return a.tokens == b.tokens && a.logits == b.logits; }
};

class StepRunner {
 public:
  explicit StepRunner(std::unique_ptr<EngineResources> resources) : r_(std::move(resources)) {}

  /// Called with every row of logits, beside the hashing.
  std::function<void(std::size_t request, Pos position, std::span<const float> logits)> on_logits;

  /// Called before each step runs, with the plan that is committed.
  std::function<void(const StepPlan&)> before_step;

  /// The budget of the next step; none: the scheduler's own.
  std::function<std::uint32_t()> budget;

  /// All requests at once; outcomes by request, then by choice.
  std::vector<std::vector<Outcome>> run(const std::vector<Request>& requests) {
    std::vector<std::vector<Outcome>> outcomes(requests.size());
    std::map<SeqId, std::pair<std::size_t, std::uint32_t>> owners;
    r_->executor->observe_logits([&](SeqId seq, Pos position, std::span<const float> logits) {
      const auto [request, choice] = owners.at(seq);
      const std::uint64_t hash = XXH3_64bits(logits.data(), logits.size_bytes());
      auto& seen = outcomes[request][choice].logits;
      const auto [entry, fresh] = seen.emplace(position.value, hash);
      if (!fresh && entry->second != hash) entry->second = 0;  // recomputed, and not the same: never equal to anything
      if (on_logits) on_logits(request, position, logits);
    });
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto request = std::make_shared<const Request>(requests[i]);
      outcomes[i].resize(request->params.n);
      for (std::uint32_t choice = 0; choice < request->params.n; ++choice) {
        const SeqId seq{++last_seq_};
        owners[seq] = {i, choice};
        r_->sampling->add(seq, request, request->params.seed.value_or(0), choice);
        SeqLimits limits;
        limits.max_new_tokens = request->params.max_tokens;
        limits.priority = request->priority;
        limits.prompt_logits = request->params.prompt_logprobs.has_value() && choice == 0;
        const Refusal refusal = choice == 0 ? r_->scheduler->add(seq, limits, request->prompt, Micros(last_seq_))
                                            : r_->scheduler->fork(seq, {seq.value - choice}, limits, Micros(last_seq_));
        if (refusal.why != Refusal::Why::kNone) outcomes[i][choice].finish = Finish::kError;
      }
    }
    while (r_->scheduler->has_work() && r_->scheduler->schedule(plan_, budget ? budget() : ~0U)) {
      r_->scheduler->commit(plan_);
      chunks += static_cast<std::uint64_t>(
          std::count_if(plan_.rows.begin(), plan_.rows.end(), [](const StepRow& row) { return row.num_samples == 0; }));
      if (before_step) before_step(plan_);
      r_->executor->run(plan_, result_);
      r_->scheduler->apply(result_);
      for (const SeqId seq : r_->scheduler->ended()) {
        const Sequence& s = *r_->scheduler->find(seq);
        const auto [request, choice] = owners.at(seq);
        Outcome& out = outcomes[request][choice];
        if (out.finish != Finish::kNone) continue;
        out.tokens.assign(s.known.begin() + s.prompt_tokens, s.known.end());
        out.preemptions = s.preemptions;
        out.cached_tokens = s.cached_tokens;
        out.finish = s.finish;
        SequenceSampling& sampling = r_->sampling->at(seq);
        out.logprobs = std::move(sampling.logprobs);
        out.prompt_logprobs = std::move(sampling.prompt_logprobs);
        r_->sampling->drop(seq);
      }
    }
    return outcomes;
  }

  [[nodiscard]] EngineResources& resources() { return *r_; }
  [[nodiscard]] const SchedulerCounters& counters() const { return r_->scheduler->counters(); }
  std::uint64_t chunks = 0;  // rows that computed part of a prompt and sampled nothing

 private:
  std::unique_ptr<EngineResources> r_;
  StepPlan plan_;
  StepResult result_;
  std::uint64_t last_seq_ = 0;
};

}  // namespace octavo::testing
