// How many tokens the next step may take: as many as keep running streams fluent. The rule is in docs/scheduling.md.
//
// Values only (predicted times, counts): no clock, no queue; engine and simulator use the same object. A budget changes
// when a token is computed, never its bits.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "sched/step_time.h"

namespace octavo {

/// The largest budget's step takes at most so many steps of one token alone.
inline constexpr double kMostDecodeSteps = 8;
/// Without a target, a step that carries prompt tokens takes at most so many steps of the running streams alone. Less
/// than the largest budget's: machines stumble, and a stream should hardly ever see more than that.
inline constexpr double kMostStreamSteps = 5;
/// Whatever the target: prompts may stretch a step by so much, so that streams leave them a fifth of the time.
inline constexpr double kLeastStretch = 1.25;

/// A prompt (or what is known of a preempted sequence), as far as it is not computed.
struct PromptLeft {
  std::uint32_t computed = 0;
  std::uint32_t todo = 0;  // >= 1
  bool running = false;    // it has a seat, and a token of every step
  Nanos waited{};          // since it arrived
};

struct BudgetLimits {
  std::uint32_t max_tokens = 512;    // max_num_batched_tokens
  std::uint32_t max_per_prompt = 0;  // long_prefill_token_threshold; 0: none
  std::optional<Nanos> target_tpot, target_ttft;
};

/// `max_num_batched_tokens` by measurement: the largest multiple of 16 whose step, all of it one prompt with one row of
/// logits, takes at most kMostDecodeSteps of one token alone; between `least` and `most`.
struct AutoBudget {
  std::uint32_t tokens = 0;
  double decode_steps = 0;  // that such a step takes
};
[[nodiscard]] AutoBudget auto_budget(const StepTime& time, std::uint32_t least, std::uint32_t most);

class StepBudget {
 public:
  explicit StepBudget(const BudgetLimits& limits) : limits_(limits) {}

  /// The budget of a step in which `num_streams` running sequences generate, with `streams` to do, and `prompts`, by
  /// rank, share what is left. At least one token for each running sequence and one for a prompt, at most max_tokens.
  [[nodiscard]] std::uint32_t choose(const StepTime& time, std::uint32_t num_streams, const StepWork& streams,
                                     std::span<const PromptLeft> prompts) const;

 private:
  [[nodiscard]] Nanos longest_step(const StepTime& time, Nanos streams_alone,
                                   std::span<const PromptLeft> prompts) const;
  [[nodiscard]] std::uint32_t share(const PromptLeft& prompt) const;

  BudgetLimits limits_;
};

}  // namespace octavo
