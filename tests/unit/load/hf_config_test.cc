#include "load/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A config of `type` with 4 layers and these fields besides.
std::string config_text(const std::string& type, const std::string& fields) {
  return R"({"model_type": ")" + type +
         R"(", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 256, "vocab_size": 288)" +
         (fields.empty() ? "" : ", " + fields) + "}";
}

ModelSpec spec_of(const std::string& type, const std::string& fields) {
  auto config = parse_hf_config("config.json", config_text(type, fields));
  EXPECT_TRUE(config) << config.error().message;
  if (!config) return {};
  auto spec = make_spec(*config->arch, config->facts);
  EXPECT_TRUE(spec) << spec.error().message;
  return spec ? *spec : ModelSpec{};
}

std::string refusal(const std::string& type, const std::string& fields) {
  const auto config = parse_hf_config("config.json", config_text(type, fields));
  return config ? "(accepted)" : config.error().message;
}

std::vector<std::uint32_t> windows(const ModelSpec& spec) {
  std::vector<std::uint32_t> out;
  for (const LayerSpec& layer : spec.layers) out.push_back(layer.window);
  return out;
}

TEST(HfConfig, ReadsWindowsInAllTheirShapes) {
  EXPECT_THAT(windows(spec_of("mistral", R"("sliding_window": 8)")), ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(windows(spec_of("mistral", R"("sliding_window": null)")), ElementsAre(0, 0, 0, 0));
  const std::string qwen = R"("sliding_window": 8, "max_window_layers": 2)";
  EXPECT_THAT(windows(spec_of("qwen2", qwen)), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(windows(spec_of("qwen2", qwen + R"(, "use_sliding_window": false)")), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(windows(spec_of("qwen2", qwen + R"(, "use_sliding_window": true)")), ElementsAre(0, 0, 8, 8));
  EXPECT_THAT(windows(spec_of("gemma2", R"("sliding_window": 8)")), ElementsAre(8, 0, 8, 0));
  EXPECT_THAT(windows(spec_of("gemma3_text", R"("sliding_window": 8, "sliding_window_pattern": 4)")),
              ElementsAre(8, 8, 8, 0));
  EXPECT_THAT(windows(spec_of("gemma3_text", R"("sliding_window": 8, "_sliding_window_pattern": 3)")),
              ElementsAre(8, 8, 0, 8));
  const std::string types =
      R"("layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"])";
  EXPECT_THAT(windows(spec_of("gemma3_text", R"("sliding_window": 8, )" + types)), ElementsAre(0, 8, 0, 8));
  EXPECT_THAT(refusal("mistral", R"("sliding_window": null, )" + types), HasSubstr("sliding_window is missing"));
  EXPECT_THAT(refusal("gemma3_text", R"("layer_types": ["full_attention"])"), HasSubstr("4 entries"));
  EXPECT_THAT(refusal("gemma3_text", R"("layer_types": ["a", "a", "a", "a"])"), HasSubstr("layer_types"));
}

TEST(HfConfig, ReadsRopeInTheShapesOfBothVersions) {
  const std::string llama3 =
      R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32)";
  const RopeSpec old_shape =
      spec_of("llama", R"("rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", )" + llama3 + "}")
          .ropes.at(0);
  EXPECT_EQ(old_shape.base, 500000.0F);
  EXPECT_EQ(old_shape.llama3.factor, 8.0F);
  EXPECT_EQ(old_shape.llama3.original_context, 32U);
  const RopeSpec new_shape =
      spec_of("llama", R"("rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", )" + llama3 + "}")
          .ropes.at(0);
  EXPECT_TRUE(new_shape == old_shape);
  EXPECT_EQ(spec_of("llama", R"("rope_scaling": {"type": "linear", "factor": 4})").ropes.at(0).linear_factor, 4.0F);
  EXPECT_EQ(spec_of("llama", "").ropes.at(0).base, 10000.0F);

  const ModelSpec by_layer = spec_of("gemma3_text", R"("sliding_window": 8, "rope_parameters": {
      "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 2000000.0},
      "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0}})");
  ASSERT_EQ(by_layer.ropes.size(), 2U);
  EXPECT_EQ(by_layer.ropes[0].base, 2e6F);
  EXPECT_EQ(by_layer.ropes[0].linear_factor, 8.0F);
  EXPECT_EQ(by_layer.ropes[1].base, 2e4F);
  EXPECT_EQ(by_layer.ropes[1].linear_factor, 1.0F);
}

TEST(HfConfig, TakesTheRowsDefaults) {
  const ModelSpec gemma = spec_of("gemma3_text", "");
  EXPECT_EQ(gemma.layers[0].head_dim, 256U);
  EXPECT_EQ(gemma.ropes.at(0).base, 1e6F);
  EXPECT_EQ(gemma.ropes.at(1).base, 1e4F);
  EXPECT_TRUE(gemma.tied_embeddings);
  EXPECT_EQ(gemma.norm_eps, 1e-6F);
  EXPECT_EQ(spec_of("gemma2", "").attn_soft_cap, 50.0F);
  EXPECT_EQ(spec_of("gemma2", R"("attn_logit_softcapping": null)").attn_soft_cap, 0.0F);
  EXPECT_EQ(spec_of("gemma3_text", R"("query_pre_attn_scalar": 24)").attn_scale,
            static_cast<float>(1 / std::sqrt(24.0)));
  EXPECT_EQ(spec_of("llama", R"("head_dim": 32)").layers[0].head_dim, 32U);
  EXPECT_FALSE(spec_of("llama", "").tied_embeddings);
  EXPECT_TRUE(spec_of("llama", R"("tie_word_embeddings": true)").tied_embeddings);
}

TEST(HfConfig, NamesWhatIsNotSupported) {
  EXPECT_THAT(refusal("mamba", ""), ::testing::AllOf(HasSubstr("'mamba'"), HasSubstr("llama, mistral, qwen2")));
  for (const char* type : {"yarn", "longrope", "dynamic"}) {
    const std::string scaling = std::string(R"("rope_scaling": {"factor": 2.0, "rope_type": ")") + type + "\"}";
    EXPECT_THAT(refusal("llama", scaling), HasSubstr(std::string("'") + type + "' is not supported"));
  }
  EXPECT_THAT(refusal("llama", R"("quantization_config": {"bits": 4})"), HasSubstr("quantization_config"));
  EXPECT_THAT(refusal("llama", R"("attention_bias": true)"), HasSubstr("attention_bias"));
  EXPECT_THAT(refusal("llama", R"("hidden_act": "relu")"), HasSubstr("'relu'"));
  EXPECT_THAT(refusal("llama", R"("partial_rotary_factor": 0.5)"), HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(refusal("gemma3_text", R"("use_bidirectional_attention": true)"), HasSubstr("causal"));
}

TEST(HfConfig, RefusesBadJson) {
  const auto error = [](std::string_view text) {
    const auto config = parse_hf_config("config.json", text);
    return config ? "(accepted)" : config.error().message;
  };
  EXPECT_THAT(error("{"), HasSubstr("config.json: JSON"));
  EXPECT_THAT(error("[]"), HasSubstr("not an object"));
  EXPECT_THAT(error(R"({"a": 1, "a": 2})"), HasSubstr("'a' occurs twice"));
  EXPECT_THAT(error(std::string(R"({"a": )") + std::string(100000, '[')), HasSubstr("nests deeper"));
  EXPECT_THAT(error("{\"a\": \"\xff\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(error("{}"), HasSubstr("model_type is missing"));
  EXPECT_THAT(refusal("llama", R"("head_dim": -1)"), HasSubstr("head_dim"));
  EXPECT_THAT(refusal("llama", R"("head_dim": 1e3)"), HasSubstr("head_dim"));
  EXPECT_THAT(refusal("llama", R"("rope_theta": "big")"), HasSubstr("rope_theta"));
  EXPECT_THAT(refusal("llama", R"("rope_scaling": 3)"), HasSubstr("rope_scaling is not an object"));
}

}  // namespace
}  // namespace octavo
