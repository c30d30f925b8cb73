#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sample/rng.h"

namespace octavo {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr std::uint32_t kFirstCandidates = 64;  // enough for nearly every row; grown fourfold where it is not

// Below, dividing by the temperature leaves the range of floats, and no draw could differ from the best token anyway.
constexpr float kGreedyBelow = 1e-4F;

/// Minus infinity is a masked token; NaN and plus infinity say that something broke.
bool are_numbers(std::span<const float> logits) {
  bool broken = false;
  for (const float x : logits) broken |= !(x < std::numeric_limits<float>::infinity());
  return !broken;
}

std::uint32_t size_of(std::span<const float> logits) { return static_cast<std::uint32_t>(logits.size()); }

std::size_t index_of(TokenId id) { return static_cast<std::size_t>(id.value); }

/// `candidates` best of a row with their log-probabilities.
std::vector<std::pair<TokenId, float>> best_logprobs(const Kernels& kernels, std::span<const float> logits, float lse,
                                                     std::uint32_t count) {
  std::vector<Candidate> best(std::min(count, size_of(logits)));
  best.resize(kernels.top(logits.data(), size_of(logits), static_cast<std::uint32_t>(best.size()), best.data()));
  std::vector<std::pair<TokenId, float>> out;
  out.reserve(best.size());
  for (const Candidate& c : best) out.emplace_back(c.id, c.logit - lse);
  return out;
}

}  // namespace

std::optional<TokenLogprob> token_logprobs(const Kernels& kernels, std::span<const float> logits, TokenId id,
                                           std::uint32_t top) {
  if (!are_numbers(logits)) return std::nullopt;
  const float lse = kernels.log_sum_exp(logits.data(), size_of(logits));
  if (!std::isfinite(lse)) return std::nullopt;
  return TokenLogprob{id, logits[index_of(id)] - lse, best_logprobs(kernels, logits, lse, top)};
}

Sampler::Sampler(const Kernels& kernels, std::uint32_t vocab_size)
    : kernels_(kernels), masses_(vocab_size), candidates_(vocab_size), counts_(vocab_size) {
  seen_.reserve(vocab_size);
  raw_.reserve(vocab_size);
}

std::optional<TokenId> Sampler::sample(const SampleInput& input, TokenLogprob* logprob) {
  const std::span<float> logits = input.logits;
  const SamplingParams& params = input.params;
  if (!are_numbers(logits)) return std::nullopt;
  float lse = 0;
  if (logprob != nullptr) {
    lse = kernels_.log_sum_exp(logits.data(), size_of(logits));
    logprob->top = best_logprobs(kernels_, logits, lse, *params.logprobs);
  }

  raw_.clear();
  for (const auto& [id, bias] : params.logit_bias) edit(logits, id, logits[index_of(id)] + bias);
  penalize(input);
  if (input.output.size() < params.min_tokens) mask_endings(input);

  TokenId token = kernels_.argmax(logits.data(), size_of(logits));
  const float best = logits[index_of(token)];
  if (!std::isfinite(best)) return std::nullopt;
  if (params.temperature >= kGreedyBelow) {
    const bool filtered = params.top_k > 0 || params.top_p < 1 || params.min_p > 0;
    token = filtered ? draw_from_best(input, best) : draw_from_all(input, best);
  }
  if (logprob != nullptr) {
    const auto edited = std::find_if(raw_.begin(), raw_.end(), [&](const auto& e) { return e.first == token; });
    logprob->id = token;
    logprob->logprob = (edited == raw_.end() ? logits[index_of(token)] : edited->second) - lse;
  }
  return token;
}

void Sampler::edit(std::span<float> logits, TokenId id, float value) {
  raw_.emplace_back(id, logits[index_of(id)]);
  logits[index_of(id)] = value;
}

void Sampler::mask_endings(const SampleInput& input) {
  for (const TokenId id : input.params.stop_token_ids) edit(input.logits, id, kMasked);
  if (input.params.ignore_eos) return;
  for (const TokenId id : input.end_of_generation) edit(input.logits, id, kMasked);
}

/// Repetition looks at prompt and output; presence and frequency at the output alone.
void Sampler::penalize(const SampleInput& input) {
  const SamplingParams& params = input.params;
  const bool counts_output = params.presence_penalty != 0 || params.frequency_penalty != 0;
  if (params.repetition_penalty == 1 && !counts_output) return;
  seen_.clear();
  const auto note = [&](TokenId id, std::uint32_t occurrences) {
    constexpr std::uint32_t kSeen = 1U << 31;
    std::uint32_t& count = counts_[index_of(id)];
    if (count == 0) seen_.push_back(id);
    count = (count | kSeen) + occurrences;
  };
  for (const TokenId id : input.output) note(id, 1);
  if (params.repetition_penalty != 1) {
    for (const TokenId id : input.prompt) note(id, 0);
  }
  for (const TokenId id : seen_) {
    const std::uint32_t in_output = counts_[index_of(id)] & ~(1U << 31);
    counts_[index_of(id)] = 0;
    float logit = input.logits[index_of(id)];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    logit -= static_cast<float>(in_output) * params.frequency_penalty;
    if (in_output > 0) logit -= params.presence_penalty;
    edit(input.logits, id, logit);
  }
}

TokenId Sampler::draw_from_all(const SampleInput& input, float best) {
  const std::span<float> logits = input.logits;
  const float inverse = 1.0F / input.params.temperature;
  float* masses = masses_.data();
  std::copy(logits.begin(), logits.end(), masses);
  kernels_.scale(masses, inverse, size_of(logits));
  const float total = kernels_.exp_sum(masses, best * inverse, size_of(logits), masses);
  const float target = uniform(input.seed, input.choice, input.position, 0) * total;
  float sum = 0;
  TokenId last{0};  // rounding can leave the running sum below the target: then the last token with any mass
  for (std::uint32_t i = 0; i < logits.size(); ++i) {
    if (masses[i] == 0) continue;
    sum += masses[i];
    last = {static_cast<std::int32_t>(i)};
    if (sum > target) return last;
  }
  return last;
}

TokenId Sampler::draw_from_best(const SampleInput& input, float best) {
  const std::span<float> logits = input.logits;
  const SamplingParams& params = input.params;
  const float inverse = 1.0F / params.temperature;
  const std::uint32_t vocab = size_of(logits);
  const std::uint32_t most = params.top_k > 0 ? std::min(static_cast<std::uint32_t>(params.top_k), vocab) : vocab;
  const bool only_top_p = params.top_k <= 0 && params.min_p <= 0;
  float* masses = masses_.data();

  // top-p alone measures against the mass of the whole row.
  float whole = 0;
  if (only_top_p) {
    std::copy(logits.begin(), logits.end(), masses);
    kernels_.scale(masses, inverse, vocab);
    whole = kernels_.exp_sum(masses, best * inverse, vocab, masses);
  }

  for (std::uint32_t wanted = std::min(kFirstCandidates, most);; wanted = std::min(wanted * 4, most)) {
    const std::uint32_t found = kernels_.top(logits.data(), vocab, wanted, candidates_.data());
    for (std::uint32_t i = 0; i < found; ++i) masses[i] = candidates_[i].logit * inverse;
    kernels_.exp_sum(masses, best * inverse, found, masses);

    std::uint32_t kept = 0;  // min-p: a share of the best, whose mass is 1
    float mass = 0;
    while (kept < found && masses[kept] > 0 && masses[kept] >= params.min_p) mass += masses[kept++];
    const bool exhausted = found < wanted || wanted == most || kept < found;
    if (!exhausted && (!only_top_p || mass < params.top_p * whole)) continue;

    if (params.top_p < 1) {
      const float enough = params.top_p * (only_top_p ? whole : mass);
      float sum = 0;
      std::uint32_t nucleus = 0;
      while (nucleus < kept && sum < enough) sum += masses[nucleus++];
      kept = nucleus;
      mass = sum;
    }
    const float target = uniform(input.seed, input.choice, input.position, 0) * mass;
    float sum = 0;
    for (std::uint32_t i = 0; i < kept; ++i) {
      sum += masses[i];
      if (sum > target) return candidates_[i].id;
    }
    return candidates_[kept - 1].id;
  }
}

}  // namespace octavo
