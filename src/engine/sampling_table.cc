#include "engine/sampling_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace octavo {

SamplingTable::SamplingTable(const Kernels& kernels, std::uint32_t vocab_size, std::vector<TokenId> end_of_generation,
                             std::uint32_t workers)
    : kernels_(kernels), end_of_generation_(std::move(end_of_generation)) {
  samplers_.reserve(workers);
  for (std::uint32_t i = 0; i < workers; ++i) samplers_.emplace_back(kernels, vocab_size);
}

void SamplingTable::add(SeqId seq, std::shared_ptr<const Request> request, std::uint64_t seed, std::uint32_t choice) {
  SequenceSampling& entry = sequences_[seq.value];
  entry.request = std::move(request);
  entry.seed = seed;
  entry.choice = choice;
  entry.output.reserve(entry.request->params.max_tokens);
}

void SamplingTable::drop(SeqId seq) { sequences_.erase(seq.value); }

SequenceSampling& SamplingTable::at(SeqId seq) {
  const auto found = sequences_.find(seq.value);
  OCTAVO_CHECK(found != sequences_.end(), "a sequence in the plan is unknown to the sampler");
  return found->second;
}

SamplingTable::Next SamplingTable::sample(SeqId seq, Pos position, std::span<float> logits, std::uint32_t worker) {
  SequenceSampling& s = at(seq);
  const SamplingParams& params = s.request->params;
  TokenLogprob logprob;
  const SampleInput input{params, s.seed, s.choice, position, s.request->prompt, s.output, end_of_generation_, logits};
  const auto token = samplers_[worker].sample(input, params.logprobs ? &logprob : nullptr);
  if (!token) return {TokenId{0}, false, true};
  s.output.push_back(*token);
  if (params.logprobs) s.logprobs.push_back(std::move(logprob));
  const auto listed = [&](std::span<const TokenId> set) {
    return std::find(set.begin(), set.end(), *token) != set.end();
  };
  const bool stops = (!params.ignore_eos && listed(end_of_generation_)) || listed(params.stop_token_ids);
  return {*token, stops && s.output.size() > params.min_tokens, false};
}

bool SamplingTable::score_prompt(SeqId seq, std::uint32_t index, std::span<const float> logits) {
  SequenceSampling& s = at(seq);
  const std::vector<TokenId>& prompt = s.request->prompt;
  if (s.prompt_logprobs.empty()) s.prompt_logprobs.push_back({prompt[0], std::nullopt, {}});
  if (index >= prompt.size()) return true;  // what follows the prompt is not asked for
  auto scored = token_logprobs(kernels_, logits, prompt[index], *s.request->params.prompt_logprobs);
  if (!scored) return false;
  s.prompt_logprobs.push_back(std::move(*scored));
  return true;
}

}  // namespace octavo
