// SmolLM2-135M and Gemma-3-270M, as their packaged files are, against a float32 reference of two implementations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "load/open_checkpoint.h"
#include "support/data_paths.h"
#include "support/step_runner.h"

namespace octavo::testing {
namespace {

constexpr double kMaxLogprobError = 1e-3;      // float32 weights and KV: only rounding is left
constexpr double kMaxMeanLogprobError = 0.06;  // int8 activations, BF16 KV, all prompts pooled
constexpr double kMaxNllError = 0.005;         // relative
constexpr double kClearGap = 0.35;             // reference gap of two best logits above which top-1 must agree

struct Reference {
  std::string model;
  nlohmann::json prompts;
};

std::vector<TokenId> tokens_of(const nlohmann::json& ids) {
  std::vector<TokenId> tokens;
  for (const auto& id : ids) tokens.push_back({id.get<std::int32_t>()});
  return tokens;
}

double log_sum_exp(std::span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - max);
  return max + std::log(sum);
}

class RealModels : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    reference_.model = model_path(name == "gemma3" ? "gemma3-270m" : name);
    const std::string oracle = oracle_path("logits/" + name + ".json");
    if (reference_.model.empty()) GTEST_SKIP() << "the packaged model " << name << " has not been fetched";
    if (oracle.empty()) GTEST_SKIP() << "the oracles' folder logits is not here";
    reference_.prompts = nlohmann::json::parse(std::ifstream(oracle))["prompts"];
  }

  std::unique_ptr<StepRunner> runner(bool float32) {
    EngineConfig config;
    config.model = reference_.model;
    config.numerics = float32 ? Numerics::kF32 : Numerics::kInt8;
    config.kv_type = float32 ? KvType::kF32 : KvType::kBF16;
    config.max_num_seqs = 8;
    config.max_model_len = 2048;
    const auto checkpoint = open_checkpoint(config.model);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    if (!checkpoint) return nullptr;
    auto resources = build_resources(config, **checkpoint, {}, {});
    EXPECT_TRUE(resources) << resources.error().message;
    return resources ? std::make_unique<StepRunner>(std::move(*resources)) : nullptr;
  }

  Reference reference_;
};

TEST_P(RealModels, Float32AgreesToRounding) {
  const auto runner = this->runner(true);
  ASSERT_NE(runner, nullptr);
  for (const auto& prompt : reference_.prompts) {
    SCOPED_TRACE(prompt["name"].get<std::string>());
    Request request;
    request.prompt = tokens_of(prompt["ids"]);
    request.params.max_tokens = static_cast<std::uint32_t>(prompt["greedy"].size());
    request.params.temperature = 0;
    request.params.ignore_eos = true;
    request.params.prompt_logprobs = 0;

    double worst = 0;
    std::size_t compared = 0;
    runner->on_logits = [&](std::size_t, Pos position, std::span<const float> logits) {
      const double lse = log_sum_exp(logits);
      const auto compare = [&](std::int32_t id, double reference) {
        worst = std::max(worst, std::fabs(logits[static_cast<std::size_t>(id)] - lse - reference));
        ++compared;
      };
      const std::size_t p = position.value;
      if (p < prompt["logprobs"].size()) compare(prompt["ids"][p + 1], prompt["logprobs"][p]);
      for (const auto& last : prompt["last"]) {
        if (last["pos"] != p) continue;
        for (std::size_t i = 0; i < last["ids"].size(); ++i) compare(last["ids"][i], last["logprobs"][i]);
      }
    };
    const auto outcome = runner->run({request})[0][0];
    EXPECT_EQ(compared, prompt["logprobs"].size() + 20 * prompt["last"].size());
    EXPECT_LE(worst, kMaxLogprobError);
    EXPECT_EQ(outcome.tokens, tokens_of(prompt["greedy"]));
    std::printf("[ float32  ] %s %s: worst log-probability error %.2e\n", GetParam(),
                prompt["name"].get<std::string>().c_str(), worst);
  }
}

TEST_P(RealModels, DefaultNumericsStayClose) {
  const auto runner = this->runner(false);
  ASSERT_NE(runner, nullptr);
  std::vector<Request> requests;
  for (const auto& prompt : reference_.prompts) {
    Request request;
    request.prompt = tokens_of(prompt["ids"]);
    const auto greedy = tokens_of(prompt["greedy"]);
    request.prompt.insert(request.prompt.end(), greedy.begin(), greedy.end() - 1);  // teacher forcing
    request.params.max_tokens = 1;
    request.params.temperature = 0;
    request.params.ignore_eos = true;
    request.params.prompt_logprobs = 0;
    requests.push_back(request);
  }
  double error_sum = 0;
  double nll = 0;
  std::size_t scored = 0;
  std::size_t clear_steps = 0;
  runner->on_logits = [&](std::size_t index, Pos position, std::span<const float> logits) {
    const auto& prompt = reference_.prompts[index];
    const std::size_t p = position.value;
    const std::size_t length = prompt["ids"].size();
    if (p + 1 < length) {
      const double reference = prompt["logprobs"][p];
      const double mine = logits[prompt["ids"][p + 1].get<std::size_t>()] - log_sum_exp(logits);
      error_sum += std::fabs(mine - reference);
      nll -= mine;
      ++scored;
      return;
    }
    const std::size_t step = p + 1 - length;
    if (prompt["greedy_gaps"][step] < kClearGap) return;
    ++clear_steps;
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    EXPECT_EQ(best, prompt["greedy"][step].get<std::int64_t>()) << prompt["name"] << " step " << step;
  };
  (void)runner->run(requests);
  double reference_nll = 0;
  for (const auto& prompt : reference_.prompts) reference_nll += prompt["nll"].get<double>();
  const double mean = error_sum / static_cast<double>(scored);
  const double relative = std::fabs(nll / reference_nll - 1);
  std::printf("[ default  ] %s: mean |d log p| %.4f, NLL off by %.3f %%, %zu clear greedy steps agree\n", GetParam(),
              mean, 100 * relative, clear_steps);
  EXPECT_LE(mean, kMaxMeanLogprobError);
  EXPECT_LE(relative, kMaxNllError);
  EXPECT_GT(clear_steps, 100U);
}

INSTANTIATE_TEST_SUITE_P(Packaged, RealModels, ::testing::Values("smollm2", "gemma3"));

}  // namespace
}  // namespace octavo::testing
