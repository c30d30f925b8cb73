// What sampling needs of every sequence, by SeqId: parameters, tokens so far, and the log-probabilities that wait to be
// delivered. The engine adds and drops sequences; the executor samples between.
//
// Threads: the engine thread; sample() and score_prompt() may run for different sequences at the same time, each
// worker with its own scratch.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "kernels/kernels.h"
#include "octavo/request.h"
#include "sample/sampler.h"

namespace octavo {

struct SequenceSampling {
  std::shared_ptr<const Request> request;
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;
  std::vector<TokenId> output;
  std::vector<TokenLogprob> prompt_logprobs;  // [prompt so far]
  std::vector<TokenLogprob> logprobs;         // of output since the engine last took them
};

class SamplingTable {
 public:
  SamplingTable(const Kernels& kernels, std::uint32_t vocab_size, std::vector<TokenId> end_of_generation,
                std::uint32_t workers);

  void add(SeqId seq, std::shared_ptr<const Request> request, std::uint64_t seed, std::uint32_t choice);
  void drop(SeqId seq);
  [[nodiscard]] SequenceSampling& at(SeqId seq);

  struct Next {
    TokenId token;
    bool ends = false;    // it is an end-of-generation or stop token, and min_tokens are reached
    bool failed = false;  // the logits are not numbers
  };
  /// The token at `position`, from the logits of the position before it. Edits `logits`.
  [[nodiscard]] Next sample(SeqId seq, Pos position, std::span<float> logits, std::uint32_t worker);
  /// Records the log-probability of prompt token `index` (>= 1), from the logits of index - 1. False: not numbers.
  [[nodiscard]] bool score_prompt(SeqId seq, std::uint32_t index, std::span<const float> logits);

 private:
  const Kernels& kernels_;
  std::vector<TokenId> end_of_generation_;
  std::vector<Sampler> samplers_;  // [workers]
  std::unordered_map<std::uint64_t, SequenceSampling> sequences_;
};

}  // namespace octavo
