#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "sample/rng.h"

namespace octavo {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr float kFirstDepth = 8;  // temperatures below the best that top-p looks first: enough for most rows

// Below, dividing by the temperature leaves the range of floats, and no draw could differ from the best token anyway.
constexpr float kGreedyBelow = 1e-4F;

std::uint32_t size_of(std::span<const float> logits) { return static_cast<std::uint32_t>(logits.size()); }

std::size_t index_of(TokenId id) { return static_cast<std::size_t>(id.value); }

bool is_number(float logit) { return logit < std::numeric_limits<float>::infinity(); }  // -inf is a masked token

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
  const float lse = kernels.log_sum_exp(logits.data(), size_of(logits));
  if (!std::isfinite(lse)) return std::nullopt;
  return TokenLogprob{id, logits[index_of(id)] - lse, best_logprobs(kernels, logits, lse, top)};
}

Sampler::Sampler(const Kernels& kernels, std::uint32_t vocab_size)
    : kernels_(kernels),
      chunk_max_((vocab_size + kLogitChunk - 1) / kLogitChunk),
      ranked_chunks_(chunk_max_.size()),
      masses_(vocab_size),
      candidates_(vocab_size),
      counts_(vocab_size) {
  seen_.reserve(vocab_size);
  raw_.reserve(vocab_size);
}

std::optional<TokenId> Sampler::sample(const SampleInput& input, TokenLogprob* logprob) {
  const std::span<float> logits = input.logits;
  const SamplingParams& params = input.params;
  float lse = 0;
  if (logprob != nullptr) {
    lse = kernels_.log_sum_exp(logits.data(), size_of(logits));
    logprob->top = best_logprobs(kernels_, logits, lse, *params.logprobs);
  }

  raw_.clear();
  edited_only_numbers_ = true;
  for (const auto& [id, bias] : params.logit_bias) edit(logits, id, logits[index_of(id)] + bias);
  penalize(input);
  if (input.output.size() < params.min_tokens) mask_endings(input);

  const Candidate best = kernels_.largest(logits.data(), size_of(logits), chunk_max_.data());
  if (!std::isfinite(best.logit) || !edited_only_numbers_) return std::nullopt;
  TokenId token = best.id;
  if (params.temperature >= kGreedyBelow) {
    const bool filtered = params.top_k > 0 || params.top_p < 1 || params.min_p > 0;
    token = filtered ? draw_from_best(input, best.logit) : draw_from_all(input, best.logit);
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
  edited_only_numbers_ = edited_only_numbers_ && is_number(logits[index_of(id)]);
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
  const float total = kernels_.exp_sum(logits.data(), inverse, best * inverse, size_of(logits), masses);
  const float target = uniform(input.seed, input.choice, input.position, 0) * total;
  float sum = 0;
  std::uint32_t i = 0;
  for (float next = 0; i + 16 <= logits.size(); i += 16, sum = next) {  // it never falls: sixteen at a time will do
    for (std::uint32_t j = i; j < i + 16; ++j) next += masses[j];
    if (next > target) break;
  }
  for (; i < logits.size(); ++i) {
    sum += masses[i];
    if (sum > target) break;
  }
  if (i == logits.size()) --i;  // rounding can leave the sum below the target: then the last token with any mass
  while (masses[i] == 0) --i;
  return TokenId{static_cast<std::int32_t>(i)};
}

/// All tokens not below `least`, by ascending id. chunk_max_ says where there are any.
std::uint32_t Sampler::gather(std::span<const float> logits, float least) {
  std::uint32_t found = 0;
  for (std::uint32_t c = 0; c < chunk_max_.size(); ++c) {
    if (chunk_max_[c] < least) continue;
    const std::uint32_t end = std::min((c + 1) * kLogitChunk, size_of(logits));
    found += kernels_.not_below(logits.data(), c * kLogitChunk, end, least, candidates_.data() + found);
  }
  return found;
}

/// Brings the `count` best of those found to the front, best first, with their masses.
void Sampler::rank(std::uint32_t found, std::uint32_t count, const Tempered& row) {
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  };
  const auto first = candidates_.begin();
  if (count < found) std::nth_element(first, first + count, first + found, better);
  std::sort(first, first + count, better);
  weigh(count, row);
}

/// Masses of the first `count`, returned: their sum.
float Sampler::weigh(std::uint32_t count, const Tempered& row) {
  for (std::uint32_t i = 0; i < count; ++i) masses_[i] = candidates_[i].logit;
  return kernels_.exp_sum(masses_.data(), row.inverse, row.best * row.inverse, count, masses_.data());
}

/// The `count` best tokens: so many chunks reach the threshold that as many tokens do.
std::uint32_t Sampler::take_best(std::span<const float> logits, std::uint32_t count, const Tempered& row) {
  float least = kMasked;
  if (count <= chunk_max_.size()) {
    std::copy(chunk_max_.begin(), chunk_max_.end(), ranked_chunks_.begin());
    const auto last = ranked_chunks_.begin() + (count - 1);
    std::nth_element(ranked_chunks_.begin(), last, ranked_chunks_.end(), std::greater<>());
    least = *last;
  }
  rank(gather(logits, least), count, row);
  return count;
}

/// The best tokens as far down as their share of the best one's mass is `min_p`, or, of those of top-p, until their
/// mass is `enough`; some that weigh less may follow. Where that ends is guessed, and proved by what is found.
std::uint32_t Sampler::take_mass(std::span<const float> logits, float min_p, float enough, const Tempered& row) {
  const float shift = row.best * row.inverse;
  float depth = min_p > 0 ? 0.01F - std::log(min_p) : kFirstDepth;  // in temperatures
  for (float step = 1;; depth += step, step *= 2) {
    const float least = row.best - depth / row.inverse;
    float edge = 0;  // what is below `least` weighs no more, but for a rounding error
    kernels_.exp_sum(&least, row.inverse, shift, 1, &edge);
    if (edge > 0 && edge >= 0.999F * min_p && min_p > 0) continue;
    const std::uint32_t found = gather(logits, least);
    const bool all = edge == 0 || found == logits.size();
    if (!all && weigh(found, row) < 0.999F * enough) continue;
    rank(found, found, row);
    float mass = 0;
    for (std::uint32_t i = 0; i < found && mass < enough; ++i) mass += masses_[i];
    if (all || mass >= enough) return found;
  }
}

TokenId Sampler::draw_from_best(const SampleInput& input, float best) {
  const std::span<const float> logits = input.logits;
  const SamplingParams& params = input.params;
  const Tempered row{best, 1.0F / params.temperature};
  const float shift = row.best * row.inverse;

  // top-p alone measures against the mass of the whole row.
  const bool only_top_p = params.top_k <= 0 && params.min_p <= 0;
  const float whole = only_top_p ? kernels_.exp_sum(logits.data(), row.inverse, shift, size_of(logits), nullptr) : 0;
  const std::uint32_t found =
      params.top_k > 0 ? take_best(logits, std::min(static_cast<std::uint32_t>(params.top_k), size_of(logits)), row)
                       : take_mass(logits, params.min_p, params.top_p * whole, row);

  const float* masses = masses_.data();
  std::uint32_t kept = 0;  // min-p: a share of the best, whose mass is 1
  float mass = 0;
  while (kept < found && masses[kept] > 0 && masses[kept] >= params.min_p) mass += masses[kept++];
  if (params.top_p < 1) {
    const float enough = params.top_p * (only_top_p ? whole : mass);
    std::uint32_t nucleus = 1;
    for (mass = masses[0]; nucleus < kept && mass < enough; ++nucleus) mass += masses[nucleus];
    kept = nucleus;
  }
  const float target = uniform(input.seed, input.choice, input.position, 0) * mass;
  float sum = 0;
  for (std::uint32_t i = 0; i < kept; ++i) {
    sum += masses[i];
    if (sum > target) return candidates_[i].id;
  }
  return candidates_[kept - 1].id;
}

}  // namespace octavo
