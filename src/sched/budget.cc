#include "sched/budget.h"

#include <algorithm>
#include <limits>

namespace octavo {
namespace {

StepWork chunk(const StepTime& time, const PromptLeft& prompt, std::uint32_t tokens) {
  return time.row(prompt.computed, tokens, tokens == prompt.todo ? 1 : 0);
}

}  // namespace

AutoBudget auto_budget(const StepTime& time, std::uint32_t least, std::uint32_t most) {
  const Nanos decode = time.predict(time.row(0, 1, 1));
  const auto steps = [&](std::uint32_t tokens) { return time.predict(time.row(0, tokens, 1)) / decode; };
  std::uint32_t tokens = 16;
  while (tokens + 16 <= most && steps(tokens + 16) <= kMostDecodeSteps) tokens += 16;
  tokens = std::clamp(tokens, least, most);
  return {tokens, steps(tokens)};
}

std::uint32_t StepBudget::share(const PromptLeft& prompt) const {
  return limits_.max_per_prompt == 0 ? prompt.todo : std::min(prompt.todo, limits_.max_per_prompt);
}

std::uint32_t StepBudget::choose(const StepTime& time, std::uint32_t num_streams, const StepWork& streams,
                                 std::span<const PromptLeft> prompts) const {
  if (num_streams == 0) return limits_.max_tokens;  // nobody's stream waits for this step
  const Nanos alone = time.predict(streams);
  const Nanos longest = longest_step(time, alone, prompts);

  // Every running sequence gets its token; what is left of the time goes by rank, as the scheduler will give it.
  std::uint32_t floor = num_streams;
  Nanos planned = alone;
  for (const PromptLeft& p : prompts) {
    if (!p.running) continue;
    ++floor;
    planned += time.added(chunk(time, p, 1));
  }
  std::uint32_t budget = floor;
  bool all_fit = true;
  for (const PromptLeft& p : prompts) {
    if (!all_fit || budget >= limits_.max_tokens) break;
    const std::uint32_t given = p.running ? 1 : 0;
    const Nanos others = planned - (p.running ? time.added(chunk(time, p, 1)) : Nanos(0));
    std::uint32_t fits = given;
    std::uint32_t over = std::min(share(p), limits_.max_tokens - budget + given) + 1;
    all_fit = others + time.added(chunk(time, p, over - 1)) <= longest;
    if (all_fit) fits = over - 1;
    while (!all_fit && over - fits > 1) {
      const std::uint32_t middle = fits + (over - fits) / 2;
      (others + time.added(chunk(time, p, middle)) <= longest ? fits : over) = middle;
    }
    budget += fits - given;
    planned = others + (fits == 0 ? Nanos(0) : time.added(chunk(time, p, fits)));
  }
  if (all_fit) return limits_.max_tokens;  // cached prefixes may leave room for more than is known here
  const std::uint32_t least = floor + (prompts.front().running ? 0 : 1);  // the first prompt gets on, whatever it costs
  return std::min(std::max(budget, least), limits_.max_tokens);
}

/// The time that streams have to bear, by prediction. A promise is for every step, so that the present slack comes off.
Nanos StepBudget::longest_step(const StepTime& time, Nanos streams_alone, std::span<const PromptLeft> prompts) const {
  const Nanos promised = limits_.target_tpot.value_or(kMostStreamSteps * streams_alone) / time.slack();
  Nanos longest = std::max(promised, kLeastStretch * streams_alone);
  if (limits_.target_tpot) return longest;
  if (!limits_.target_ttft) return longest;
  Nanos ahead{};  // of prompt work, until this prompt is done
  for (const PromptLeft& p : prompts) {
    ahead += time.added(chunk(time, p, p.todo));
    const Nanos left = *limits_.target_ttft - p.waited;
    if (left <= ahead) return Nanos(std::numeric_limits<double>::infinity());
    // Of a step as long as L, L - streams_alone is prompt work: L * ahead / (L - streams_alone) <= left.
    longest = std::max(longest, streams_alone * (left / (left - ahead)));
  }
  return longest;
}

}  // namespace octavo
