// Sizes of models from files, configs and the built-in table; and that the engine keeps to what is planned of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "octavo/engine.h"
#include "octavo/model_shape.h"
#include "octavo/planner.h"
#include "support/data_paths.h"
#include "support/tiny_model.h"

namespace octavo::testing {
namespace {

Result<ModelShape> shape_of_text(const std::string& config, const std::string& format = "") {
  const TempFile file(config, "config.json");
  return read_model_shape(file.path(), format);
}

void expect_refused(const Result<ModelShape>& shape, ErrorCode code, const std::string& words) {
  ASSERT_FALSE(shape) << words;
  EXPECT_EQ(shape.error().code, code) << shape.error().message;
  EXPECT_NE(shape.error().message.find(words), std::string::npos) << shape.error().message;
}

TEST(BuiltinShapes, AllCanBeReadAndPlanned) {
  ASSERT_GE(builtin_models().size(), 25U);
  for (const std::string& name : builtin_models()) {
    const auto shape = read_model_shape(name);
    ASSERT_TRUE(shape) << shape.error().message;
    EXPECT_EQ(shape->name, name);
    EXPECT_EQ(shape->source, "built-in");
    EXPECT_EQ(shape->weights_format, "BF16");
    EXPECT_EQ(shape->weights_bytes, shape->parameters * 2);
    EXPECT_EQ(shape->unsupported.empty(), name != "deepseek-v3") << shape->unsupported;
    MemoryQuestion question;
    question.memory = std::uint64_t{4} << 40;
    EXPECT_TRUE(plan_memory(*shape, question)) << name;
  }
}

TEST(BuiltinShapes, HaveThePublishedNumberOfParameters) {
  const auto parameters = [](const char* name) { return read_model_shape(name)->parameters; };
  EXPECT_EQ(parameters("llama-2-7b"), 6'738'415'616U);
  EXPECT_EQ(parameters("llama-2-13b"), 13'015'864'320U);
  EXPECT_EQ(parameters("llama-2-70b"), 68'976'648'192U);
  EXPECT_EQ(parameters("llama-65b"), 65'285'660'672U);
  EXPECT_EQ(parameters("llama-3.1-8b"), 8'030'261'248U);
  EXPECT_EQ(parameters("llama-3.1-405b"), 405'853'388'800U);
  EXPECT_EQ(parameters("llama-3.2-1b"), 1'235'814'400U);
  EXPECT_EQ(parameters("tinyllama-1.1b"), 1'100'048'384U);
  EXPECT_EQ(parameters("mistral-7b"), 7'241'732'096U);
  EXPECT_EQ(parameters("qwen3-8b"), 8'190'735'360U);
  EXPECT_EQ(parameters("gemma-3-270m"), 268'098'176U);
  EXPECT_EQ(parameters("smollm2-135m"), 134'515'008U);
}

TEST(BuiltinShapes, UnknownNamesGetTheList) {
  expect_refused(read_model_shape("llama-9-7b"), ErrorCode::kNotFound, "llama-2-7b, llama-2-13b");
}

TEST(WeightsFormat, IsWhatAbsentWeightsAreTakenFor) {
  const auto four_bits = read_model_shape("llama-2-7b", "Q4_0"), wide = read_model_shape("llama-2-7b");
  ASSERT_TRUE(four_bits && wide);
  EXPECT_NEAR(static_cast<double>(four_bits->weights_bytes) / static_cast<double>(wide->weights_bytes), 18.0 / 64,
              0.001);
  expect_refused(read_model_shape("llama-2-7b", "Q9"), ErrorCode::kInvalidArgument, "Q4_0");
  expect_refused(read_model_shape("smollm2-135m", "Q4_K"), ErrorCode::kInvalidArgument, "blocks of 256");
}

constexpr const char* kLlama =
    R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2,)"
    R"("intermediate_size":96,"vocab_size":258,"max_position_embeddings":512,"torch_dtype":"float32"})";

TEST(ConfigAlone, GivesTheShapeOfTheModel) {
  const auto shape = shape_of_text(kLlama);
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->weights_format, "F32");
  EXPECT_EQ(shape->unsupported, "");
  ASSERT_EQ(shape->layers.size(), 2U);
  EXPECT_EQ(shape->layers[0], (LayerShape{4, 2, 16, 0, 0}));
}

TEST(ConfigAlone, OfAModelThatDoesNotRunStatesItsMemory) {
  const auto gpt = shape_of_text(
      R"({"model_type":"gpt2","n_layer":12,"n_embd":768,"n_head":12,"n_positions":1024,"vocab_size":50257})");
  ASSERT_TRUE(gpt) << gpt.error().message;
  EXPECT_NE(gpt->unsupported.find("gpt2"), std::string::npos);
  EXPECT_EQ(gpt->layers[0], (LayerShape{12, 12, 64, 0, 0}));
  EXPECT_EQ(gpt->weights_bytes, 0U);  // nothing is guessed
  const auto plan = plan_memory(*gpt, {.memory = std::uint64_t{1} << 30, .batch = 1, .length = 1024});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->kv_bytes, 2U * 12 * 768 * 2 * 1024);
  EXPECT_TRUE(std::ranges::any_of(
      plan->notes, [](const std::string& note) { return note.find("weights are not counted") != std::string::npos; }));
}

TEST(ConfigAlone, ReadsTheTextPartOfAModelOfSeveral) {
  const auto shape = shape_of_text(
      R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text","num_hidden_layers":12,"hidden_size":2560,)"
      R"("num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"sliding_window":1024,)"
      R"("sliding_window_pattern":6,"max_position_embeddings":131072}})");
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->layers[0].window, 1024U);
  EXPECT_EQ(shape->layers[5].window, 0U);
}

TEST(ConfigAlone, RefusesWhatItCannotState) {
  expect_refused(shape_of_text(R"({"model_type":"mamba","num_hidden_layers":2,"hidden_size":64})"),
                 ErrorCode::kInvalidArgument, "max_position_embeddings is missing");
  expect_refused(shape_of_text(R"({"model_type":"next","num_hidden_layers":1,"hidden_size":64,"num_attention_heads":4,)"
                               R"("max_position_embeddings":9,"layer_types":["linear_attention"]})"),
                 ErrorCode::kInvalidArgument, "layer_types");
  expect_refused(shape_of_text(R"({"model_type":"other","num_hidden_layers":0,"hidden_size":64})"),
                 ErrorCode::kInvalidArgument, "num_hidden_layers is 0");
  expect_refused(shape_of_text("{"), ErrorCode::kCorrupt, "JSON");
}

TEST(Engine, KeepsExactlyThePlannedWeightsBuffersAndPool) {
  for (const TinyModel& tiny : one_tiny_model_per_arch()) {
    const TempFile file(write_tiny_model(tiny).bytes());
    for (const Numerics numerics : {Numerics::kInt8, Numerics::kBF16}) {
      EngineConfig config;
      config.model = file.path();
      config.numerics = numerics;
      config.kv_bytes = 4 << 20;
      config.threads = 2;
      config.pack_cache = false;
      const auto shape = read_model_shape(file.path(), "", numerics);
      ASSERT_TRUE(shape) << shape.error().message;
      const auto plan = plan_memory(*shape, {.engine = config});
      ASSERT_TRUE(plan) << plan.error().message;
      const auto engine = Engine::load(config);
      ASSERT_TRUE(engine) << engine.error().message;
      const EngineReport& report = (*engine)->report();
      EXPECT_EQ(shape->packed_weights_bytes, report.packed_weights_bytes) << tiny.arch;
      EXPECT_EQ(plan->pool_bytes, report.kv_bytes) << tiny.arch;
      EXPECT_EQ(plan->activations_bytes, report.activation_bytes) << tiny.arch;
      EXPECT_EQ(plan->longest_request, report.max_model_len) << tiny.arch;
      expect_refused(read_model_shape(file.path(), "Q4_0"), ErrorCode::kInvalidArgument, "--weights-format");
    }
  }
}

TEST(Engine, PackedSizesOfRealModelsAreThoseOfTheirShapes) {
  for (const char* name : {"smollm2", "gemma3-270m"}) {
    const std::string path = model_path(name);
    if (path.empty()) GTEST_SKIP() << "the packaged model " << name << " has not been fetched";
    EngineConfig config;
    config.model = path;
    config.kv_bytes = 64 << 20;
    config.threads = 2;
    const auto shape = read_model_shape(path);
    ASSERT_TRUE(shape) << shape.error().message;
    std::uint64_t matrices = 0;
    for (const MatrixShape& matrix : shape->matrices) matrices += matrix.packed_bytes;
    EXPECT_LT(matrices, shape->packed_weights_bytes);  // norms are vectors
    EXPECT_GT(matrices, shape->packed_weights_bytes * 99 / 100);
    const auto engine = Engine::load(config);
    ASSERT_TRUE(engine) << engine.error().message;
    EXPECT_EQ(shape->packed_weights_bytes, (*engine)->report().packed_weights_bytes) << name;
  }
}

}  // namespace
}  // namespace octavo::testing
