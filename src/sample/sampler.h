// From a row of logits to a token. Order: logit bias, penalties, temperature, min-p, top-k, top-p, one draw.
//
// Deterministic: a pure function of its input. Ties go to the lowest id. Kept candidates are summed from the best down
// (equal logits: lowest id first); without any filter, masses are summed in order of ids.
// Threads: one Sampler per worker. Memory: scratch for one vocabulary row; sample() allocates only what a caller's
// TokenLogprob needs.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "kernels/kernels.h"
#include "octavo/request.h"

namespace octavo {

struct SampleInput {
  const SamplingParams& params;
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;
  Pos position;                             // of the token that is sampled
  std::span<const TokenId> prompt, output;  // what stands before it
  std::span<const TokenId> end_of_generation;
  std::span<float> logits;  // [vocab], edited in place
};

class Sampler {
 public:
  Sampler(const Kernels& kernels, std::uint32_t vocab_size);

  /// The next token; nullopt if the logits are not numbers. `logprob`, if given, gets the token's raw log-probability
  /// and the params.logprobs best of its position.
  [[nodiscard]] std::optional<TokenId> sample(const SampleInput& input, TokenLogprob* logprob);

 private:
  void edit(std::span<float> logits, TokenId id, float value);
  void mask_endings(const SampleInput& input);
  void penalize(const SampleInput& input);
  [[nodiscard]] TokenId draw_from_all(const SampleInput& input, float best);
  [[nodiscard]] TokenId draw_from_best(const SampleInput& input, float best);

  // Of a row under a temperature: a token's mass is exp(logit * inverse - best * inverse).
  struct Tempered {
    float best, inverse;
  };
  // They leave the best tokens in candidates_, best first, their masses in masses_, and return how many.
  [[nodiscard]] std::uint32_t take_best(std::span<const float> logits, std::uint32_t count, const Tempered& row);
  [[nodiscard]] std::uint32_t take_mass(std::span<const float> logits, float min_p, float enough, const Tempered& row);
  [[nodiscard]] std::uint32_t gather(std::span<const float> logits, float least);
  void rank(std::uint32_t found, std::uint32_t count, const Tempered& row);
  float weigh(std::uint32_t count, const Tempered& row);

  const Kernels& kernels_;
  std::vector<float> chunk_max_;                // [chunks] of the row as edited
  std::vector<float> ranked_chunks_;            // [chunks]
  std::vector<float> masses_;                   // [vocab]
  std::vector<Candidate> candidates_;           // [vocab]
  std::vector<std::uint32_t> counts_;           // [vocab] occurrences, zero between calls
  std::vector<TokenId> seen_;                   // whose counts are set
  std::vector<std::pair<TokenId, float>> raw_;  // edited ids with the logits they had
  bool edited_only_numbers_ = true;
};

/// Raw log-probability of `id` and of the `top` best; nullopt if the logits are not numbers.
[[nodiscard]] std::optional<TokenLogprob> token_logprobs(const Kernels& kernels, std::span<const float> logits,
                                                         TokenId id, std::uint32_t top);

}  // namespace octavo
