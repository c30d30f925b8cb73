// The sampler against a plain model of its rules in double precision, on random logits.
#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "kernels/select.h"
#include "sample/rng.h"

namespace octavo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TokenId id(std::int32_t value) { return TokenId{value}; }

const Kernels& kernels() { return *runnable_kernels().front(); }

struct Request {
  SamplingParams params;
  std::uint64_t seed = 1;
  std::uint32_t choice = 0;
  std::uint32_t position = 5;
  std::vector<TokenId> prompt, output, end_of_generation;
};

std::optional<TokenId> sample(const Request& r, std::vector<float> logits, TokenLogprob* logprob = nullptr) {
  Sampler sampler(kernels(), static_cast<std::uint32_t>(logits.size()));
  return sampler.sample({r.params, r.seed, r.choice, Pos{r.position}, r.prompt, r.output, r.end_of_generation, logits},
                        logprob);
}

std::vector<float> random_logits(std::mt19937& random, std::size_t size, float spread) {
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> out(size);
  for (float& x : out) x = normal(random);
  return out;
}

struct Weighted {
  std::int32_t token;
  double mass;
};

/// What may be drawn, in the order in which it is summed, by the documented rules.
std::vector<Weighted> model(const Request& r, const std::vector<float>& logits) {
  const SamplingParams& p = r.params;
  std::vector<double> edited(logits.begin(), logits.end());
  for (const auto& [token, bias] : p.logit_bias) edited[static_cast<std::size_t>(token.value)] += bias;
  std::map<std::int32_t, int> in_output, anywhere;
  for (const TokenId t : r.output) ++in_output[t.value], ++anywhere[t.value];
  for (const TokenId t : r.prompt) ++anywhere[t.value];
  for (const auto& [token, times] : anywhere) {
    double& x = edited[static_cast<std::size_t>(token)];
    x = x > 0 ? x / p.repetition_penalty : x * p.repetition_penalty;
    const int n = in_output.count(token) != 0 ? in_output[token] : 0;
    x -= n * p.frequency_penalty + (n > 0 ? p.presence_penalty : 0.0);
  }
  std::vector<Weighted> all;
  for (std::size_t i = 0; i < edited.size(); ++i) all.push_back({static_cast<std::int32_t>(i), edited[i]});
  const bool filtered = p.top_k > 0 || p.top_p < 1 || p.min_p > 0;
  const double best = *std::max_element(edited.begin(), edited.end());
  for (Weighted& w : all) w.mass = std::exp((w.mass - best) / p.temperature);
  if (!filtered) return all;
  std::stable_sort(all.begin(), all.end(), [](const Weighted& a, const Weighted& b) { return a.mass > b.mass; });
  std::erase_if(all, [&](const Weighted& w) { return w.mass < p.min_p; });
  if (p.top_k > 0 && all.size() > static_cast<std::size_t>(p.top_k)) all.resize(static_cast<std::size_t>(p.top_k));
  double whole = 0, sum = 0;
  for (const Weighted& w : all) whole += w.mass;
  std::size_t kept = 0;
  while (kept < all.size() && sum < p.top_p * whole) sum += all[kept++].mass;
  all.resize(std::max<std::size_t>(kept, 1));
  return all;
}

/// The model's draw, or nothing where float rounding may decide otherwise.
std::optional<std::int32_t> model_draw(const Request& r, const std::vector<Weighted>& kept) {
  double whole = 0, sum = 0;
  for (const Weighted& w : kept) whole += w.mass;
  const double target = static_cast<double>(uniform(r.seed, r.choice, Pos{r.position}, 0)) * whole;
  for (const Weighted& w : kept) {
    sum += w.mass;
    if (std::fabs(sum - target) < 1e-4 * whole) return std::nullopt;
    if (sum > target) return w.token;
  }
  return std::nullopt;
}

struct Option {
  const char* name;
  void (*set)(SamplingParams&);
};

class SamplerOption : public testing::TestWithParam<Option> {};

TEST_P(SamplerOption, DrawsWhatTheModelDraws) {
  std::mt19937 random(20260115);
  int compared = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t vocab = trial % 2 ? 50 : 700;
    const std::vector<float> logits = random_logits(random, vocab, 2.5F);
    Request r;
    GetParam().set(r.params);
    r.seed = random();
    r.position = static_cast<std::uint32_t>(random() % 1000);
    for (int i = 0; i < 12; ++i) {
      r.prompt.push_back(id(static_cast<std::int32_t>(random() % vocab)));
      r.output.push_back(id(static_cast<std::int32_t>(random() % vocab)));
    }
    const std::vector<Weighted> kept = model(r, logits);
    const auto expected = model_draw(r, kept);
    const auto got = sample(r, logits);
    ASSERT_TRUE(got) << "trial " << trial;
    const bool allowed =
        std::any_of(kept.begin(), kept.end(), [&](const Weighted& w) { return w.token == got->value; });
    EXPECT_TRUE(allowed || !expected) << "trial " << trial << ": token " << got->value << " should be filtered out";
    if (!expected) continue;
    ++compared;
    EXPECT_EQ(got->value, *expected) << "trial " << trial;
  }
  EXPECT_GT(compared, 150);
}

INSTANTIATE_TEST_SUITE_P(Options, SamplerOption,
                         testing::Values(Option{"plain", [](SamplingParams&) {}},
                                         Option{"temperature", [](SamplingParams& p) { p.temperature = 0.6F; }},
                                         Option{"top_k", [](SamplingParams& p) { p.top_k = 7; }},
                                         Option{"top_p", [](SamplingParams& p) { p.top_p = 0.8F; }},
                                         Option{"min_p", [](SamplingParams& p) { p.min_p = 0.05F; }},
                                         Option{"repetition", [](SamplingParams& p) { p.repetition_penalty = 1.7F; }},
                                         Option{"presence", [](SamplingParams& p) { p.presence_penalty = 1.5F; }},
                                         Option{"frequency", [](SamplingParams& p) { p.frequency_penalty = -1.5F; }},
                                         Option{"bias",
                                                [](SamplingParams& p) {
                                                  p.logit_bias = {{TokenId{3}, 8.0F}, {TokenId{4}, -100.0F}};
                                                }},
                                         Option{"all",
                                                [](SamplingParams& p) {
                                                  p.temperature = 1.4F, p.top_k = 40, p.top_p = 0.9F, p.min_p = 0.01F;
                                                  p.repetition_penalty = 1.2F, p.presence_penalty = 0.4F,
                                                  p.frequency_penalty = 0.3F;
                                                  p.logit_bias = {{TokenId{3}, 3.0F}};
                                                }}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Sampler, GreedyIsTheBestAfterBiasAndPenalties) {
  Request r;
  r.params.temperature = 0;
  EXPECT_EQ(sample(r, {1, 5, 5, 2}), id(1));  // ties: the lowest id
  r.params.logit_bias = {{id(3), 4.0F}};
  EXPECT_EQ(sample(r, {1, 5, 5, 2}), id(3));
  r.params.logit_bias = {};
  r.output = {id(1)};
  r.params.presence_penalty = 0.5F;
  EXPECT_EQ(sample(r, {1, 5, 5, 2}), id(2));
}

TEST(Sampler, BiasComesBeforeTheRepetitionPenalty) {
  Request r;
  r.params.temperature = 0;
  r.params.repetition_penalty = 2;
  r.prompt = {id(0)};
  r.params.logit_bias = {{id(0), 4.0F}};  // (2 + 4) / 2 = 3, not 2 / 2 + 4 = 5
  EXPECT_EQ(sample(r, {2, 4}), id(1));
}

TEST(Sampler, TopPCountsWhatTopKLeft) {
  Request r;
  r.params.top_k = 2;
  r.params.top_p = 0.6F;  // of the two equal ones left, the first alone is half: both stay
  std::map<std::int32_t, int> seen;
  for (r.position = 0; r.position < 200; ++r.position) ++seen[sample(r, {1, 1, 1, 1})->value];
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_GT(seen[0], 60);
  EXPECT_GT(seen[1], 60);
}

TEST(Sampler, MinTokensMasksTheEndings) {
  Request r;
  r.params.temperature = 0;
  r.params.min_tokens = 2;
  r.params.stop_token_ids = {id(2)};
  r.end_of_generation = {id(1)};
  r.output = {id(0)};
  EXPECT_EQ(sample(r, {0, 9, 8, 1}), id(3));
  r.output = {id(0), id(0)};
  EXPECT_EQ(sample(r, {0, 9, 8, 1}), id(1));
}

TEST(Sampler, DrawsDependOnSeedChoiceAndPosition) {
  const std::vector<float> flat(1000, 0.0F);
  Request r;
  const auto first = sample(r, flat);
  EXPECT_EQ(sample(r, flat), first);
  Request other = r;
  other.seed = 2;
  EXPECT_NE(sample(other, flat), first);
  other = r;
  other.choice = 1;
  EXPECT_NE(sample(other, flat), first);
  other = r;
  other.position = 6;
  EXPECT_NE(sample(other, flat), first);
}

TEST(Sampler, FollowsTheDistribution) {
  const std::vector<float> logits = {0.0F, 1.0F, 2.0F, -1.0F, 0.5F};
  Request r;
  std::vector<double> expected(logits.size());
  double whole = 0;
  for (const float x : logits) whole += std::exp(x);
  std::vector<int> seen(logits.size());
  constexpr int kDraws = 20000;
  for (r.position = 0; r.position < kDraws; ++r.position) ++seen[static_cast<std::size_t>(sample(r, logits)->value)];
  double chi_square = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double want = kDraws * std::exp(logits[i]) / whole;
    chi_square += (seen[i] - want) * (seen[i] - want) / want;
  }
  EXPECT_LT(chi_square, 18.5);  // 4 degrees of freedom: 0.1 %
}

TEST(Sampler, LogprobsAreOfTheRawLogits) {
  Request r;
  r.params.temperature = 0;
  r.params.logprobs = 2;
  r.params.logit_bias = {{id(3), 100.0F}};
  const std::vector<float> logits = {1, 3, 3, 0};
  double whole = 0;
  for (const float x : logits) whole += std::exp(x);
  TokenLogprob got;
  EXPECT_EQ(sample(r, logits, &got), id(3));
  EXPECT_EQ(got.id, id(3));
  EXPECT_NEAR(*got.logprob, 0 - std::log(whole), 1e-5);
  ASSERT_EQ(got.top.size(), 2U);
  EXPECT_EQ(got.top[0].first, id(1));
  EXPECT_EQ(got.top[1].first, id(2));
  EXPECT_NEAR(got.top[0].second, 3 - std::log(whole), 1e-5);
  const auto same = token_logprobs(kernels(), logits, id(3), 2);
  ASSERT_TRUE(same);
  EXPECT_EQ(*same->logprob, *got.logprob);
  EXPECT_EQ(same->top, got.top);
}

TEST(Sampler, BrokenLogitsAreNoToken) {
  for (const float temperature : {0.0F, 1.0F}) {
    for (const float broken : {kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      Request r;
      r.params.temperature = temperature;
      EXPECT_FALSE(sample(r, {1, broken, 2}));
      EXPECT_FALSE(token_logprobs(kernels(), std::vector<float>{1, broken, 2}, id(0), 1));
    }
    Request r;
    r.params.temperature = temperature;
    EXPECT_FALSE(sample(r, {-kInfinity, -kInfinity}));
    EXPECT_EQ(sample(r, {-kInfinity, 0.0F}), id(1));
  }
}

TEST(Sampler, AnAlmostZeroTemperatureIsGreedy) {
  Request r;
  r.params.top_p = 0.9F;
  for (const float temperature : {1e-3F, 1e-10F, 1e-38F}) {
    r.params.temperature = temperature;
    EXPECT_EQ(sample(r, {10, 30, 20}), id(1)) << temperature;
  }
}

TEST(Philox, KnownAnswers) {
  using Counter = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformIsBelowOneAndInSteps) {
  for (std::uint32_t i = 0; i < 10000; ++i) {
    const float x = uniform(7, 0, Pos{i}, 0);
    EXPECT_GE(x, 0.0F);
    EXPECT_LT(x, 1.0F);
    EXPECT_EQ(x * 0x1p24F, std::floor(x * 0x1p24F));
  }
}

}  // namespace
}  // namespace octavo
