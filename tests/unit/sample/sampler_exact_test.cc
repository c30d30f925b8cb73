// The sampler against its rules spelled out in floats: everything sorted, every sum in the documented order. Tokens are
// equal, not close, whatever shortcuts the sampler takes and whatever kernels it uses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/float_mode.h"
#include "kernels/entries.h"
#include "kernels/select.h"
#include "sample/rng.h"
#include "sample/sampler.h"

namespace octavo {
namespace {

/// exp((logit - best) / temperature) of all tokens in the given order.
std::vector<float> masses_of(const std::vector<float>& logits, const std::vector<std::uint32_t>& order, float inverse,
                             float* sum) {
  const float best = *std::max_element(logits.begin(), logits.end());
  std::vector<float> masses;
  for (const std::uint32_t id : order) masses.push_back(logits[id] * inverse);
  *sum = ref::exp_sum(masses.data(), 1.0F, best * inverse, static_cast<std::uint32_t>(masses.size()), masses.data());
  return masses;
}

TokenId spelled_out(const SamplingParams& params, std::uint64_t seed, std::uint32_t position,
                    const std::vector<float>& logits) {
  const float inverse = 1.0F / params.temperature, random = uniform(seed, 0, Pos{position}, 0);
  std::vector<std::uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0U);
  float whole = 0;
  std::vector<float> masses = masses_of(logits, order, inverse, &whole);
  std::size_t kept = order.size();
  const bool filtered = params.top_k > 0 || params.top_p < 1 || params.min_p > 0;
  float mass = whole;
  if (filtered) {
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });
    float unused = 0;
    masses = masses_of(logits, order, inverse, &unused);
    const std::size_t most = params.top_k > 0 ? static_cast<std::size_t>(params.top_k) : order.size();
    for (kept = 0, mass = 0; kept < std::min(most, order.size()); ++kept) {
      if (!(masses[kept] > 0) || masses[kept] < params.min_p) break;
      mass += masses[kept];
    }
    if (params.top_p < 1) {
      const float enough = params.top_p * (params.top_k <= 0 && params.min_p <= 0 ? whole : mass);
      std::size_t nucleus = 0;
      for (mass = 0; nucleus < kept && mass < enough; ++nucleus) mass += masses[nucleus];
      kept = nucleus;
    }
  }
  float sum = 0;
  std::uint32_t last = order[0];
  for (std::size_t i = 0; i < kept; ++i) {
    if (masses[i] == 0) continue;
    sum += masses[i];
    last = order[i];
    if (sum > random * mass) break;
  }
  return TokenId{static_cast<std::int32_t>(last)};
}

std::vector<float> row_of(std::mt19937& random, std::size_t vocab, int kind) {
  std::normal_distribution<float> normal(0.0F, kind == 0 ? 1.5F : 2.5F);
  std::vector<float> row(vocab);
  for (float& x : row) x = normal(random);
  if (kind == 0) {  // a few that stand out
    for (int i = 0; i < 48; ++i) row[random() % vocab] = 20.0F - 0.25F * static_cast<float>(i);
  } else if (kind == 2) {  // many equals, and most tokens masked by a grammar
    for (float& x : row) x = random() % 3 == 0 ? std::round(x) : -std::numeric_limits<float>::infinity();
    row[random() % vocab] = 1.0F;
  }
  return row;
}

TEST(SamplerExact, TokensAreThoseOfTheRulesSpelledOut) {
  const FloatMode mode;
  std::mt19937 random(std::random_device{}());
  const auto seed = random();
  SCOPED_TRACE(seed);
  random.seed(seed);
  for (int trial = 0; trial < 240; ++trial) {
    constexpr std::size_t kVocabs[] = {1, 17, 127, 128, 1000, 5000, 32003};
    const std::size_t vocab = kVocabs[random() % std::size(kVocabs)];
    const std::vector<float> row = row_of(random, vocab, trial % 3);
    SamplingParams params;
    constexpr float kTemperatures[] = {1.0F, 0.3F, 2.5F, 0.01F, 40.0F};
    params.temperature = kTemperatures[random() % std::size(kTemperatures)];
    if (random() % 3 == 0) params.top_k = static_cast<std::int32_t>(1 + random() % (random() % 4 == 0 ? 3000 : 60));
    if (random() % 2 == 0) params.top_p = random() % 4 == 0 ? 0.999F : 0.05F + 0.9F * uniform(random(), 0, Pos{0}, 0);
    if (random() % 3 == 0) params.min_p = random() % 4 == 0 ? 1.0F : 0.2F * uniform(random(), 0, Pos{0}, 0);
    const std::uint64_t draw_seed = random();
    const TokenId want = spelled_out(params, draw_seed, 3, row);
    for (const Kernels* kernels : runnable_kernels()) {
      Sampler sampler(*kernels, static_cast<std::uint32_t>(vocab));
      std::vector<float> logits = row;
      const auto got = sampler.sample({params, draw_seed, 0, Pos{3}, {}, {}, {}, logits}, nullptr);
      ASSERT_TRUE(got);
      ASSERT_EQ(*got, want) << kernels->name << ", trial " << trial << ", vocab " << vocab << ", T "
                            << params.temperature << ", top-k " << params.top_k << ", top-p " << params.top_p
                            << ", min-p " << params.min_p;
    }
  }
}

}  // namespace
}  // namespace octavo
