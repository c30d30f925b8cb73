// Tiny random models of every family against logits of Hugging Face transformers, in float32 throughout.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "load/open_checkpoint.h"
#include "support/data_paths.h"
#include "support/step_runner.h"

namespace octavo::testing {
namespace {

// float32 rounding alone moves these logits by up to 1.2e-5; the two forms of GELU differ by 3e-4.
constexpr float kMaxLogitError = 1e-4F;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A two-dimensional float32 array of NumPy's format 1.0, row-major.
struct NpyRows {
  std::size_t rows = 0, cols = 0;
  std::vector<float> values;

  explicit NpyRows(const std::string& path) {
    const std::string bytes = read_file(path);
    const auto header_bytes = static_cast<unsigned char>(bytes.at(8)) + 256U * static_cast<unsigned char>(bytes.at(9));
    const std::string header = bytes.substr(10, header_bytes);
    const std::size_t shape = header.find("'shape': (") + 10;
    rows = std::stoul(header.substr(shape));
    cols = std::stoul(header.substr(header.find(',', shape) + 1));
    values.resize(rows * cols);
    std::memcpy(values.data(), bytes.data() + 10 + header_bytes, values.size() * sizeof(float));
  }
};

std::vector<TokenId> tokens_of(const nlohmann::json& ids) {
  std::vector<TokenId> tokens;
  for (const auto& id : ids) tokens.push_back({id.get<std::int32_t>()});
  return tokens;
}

void check_model(const std::string& folder) {
  EngineConfig config;
  config.model = folder;
  config.kv_type = KvType::kF32;
  config.max_num_seqs = 4;
  const auto checkpoint = open_checkpoint(folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  auto resources = build_resources(config, **checkpoint, {}, {});
  ASSERT_TRUE(resources) << resources.error().message;
  StepRunner runner(std::move(*resources));

  const auto expected = nlohmann::json::parse(read_file(folder + "/expected.json"));
  for (const auto& sequence : expected["sequences"]) {
    const std::string name = sequence["name"];
    const bool only_last = name == "len40";
    const NpyRows golden(folder + "/" + (only_last ? "len40_last4" : name) + ".npy");
    Request request;
    request.prompt = tokens_of(sequence["ids"]);
    request.params.max_tokens = static_cast<std::uint32_t>(sequence["greedy"].size());
    request.params.temperature = 0;
    request.params.ignore_eos = true;
    request.params.prompt_logprobs = 0;

    const std::size_t first = request.prompt.size() - golden.rows;
    std::size_t compared = 0;
    float worst = 0;
    runner.on_logits = [&](std::size_t, Pos position, std::span<const float> logits) {
      if (position.value < first || position.value >= request.prompt.size()) return;
      ASSERT_EQ(logits.size(), golden.cols);
      ++compared;
      for (std::size_t i = 0; i < logits.size(); ++i) {
        worst = std::max(worst, std::fabs(logits[i] - golden.values[(position.value - first) * golden.cols + i]));
      }
    };
    const auto outcome = runner.run({request})[0][0];
    EXPECT_EQ(compared, golden.rows) << folder << " " << name;
    EXPECT_LE(worst, kMaxLogitError) << folder << " " << name;
    EXPECT_EQ(outcome.tokens, tokens_of(sequence["greedy"])) << folder << " " << name;
  }
}

TEST(TinyModels, CommittedOnesAgree) {
  for (const char* family : {"llama", "gemma3"})
    check_model(OCTAVO_SOURCE_DIR "/tests/golden/tiny/" + std::string(family));
}

TEST(TinyModels, EveryFamilyAgrees) {
  for (const char* family : {"llama", "llama3-rope", "mistral", "qwen2", "qwen3", "gemma3"}) {
    const std::string folder = oracle_path("logits/tiny/" + std::string(family));
    if (folder.empty()) GTEST_SKIP() << "the oracles' folder logits/tiny is not here";
    check_model(folder);
  }
}

}  // namespace
}  // namespace octavo::testing
