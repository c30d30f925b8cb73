#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "load/open_checkpoint.h"
#include "support/data_paths.h"
#include "support/pack_folder.h"
#include "support/tiny_model.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::model_path;
using testing::one_tiny_model_per_arch;
using testing::oracle_path;
using testing::TempFile;
using testing::TinyModel;
using testing::write_tiny_model;

Result<std::unique_ptr<Checkpoint>> open_bytes(const std::string& bytes) {
  const TempFile file(bytes);
  return open_checkpoint(file.path());
}

std::string error_of(const GgufWriter& writer, ErrorCode code) {
  const auto checkpoint = open_bytes(writer.bytes());
  if (checkpoint) return "(opened)";
  EXPECT_EQ(checkpoint.error().code, code) << checkpoint.error().message;
  return checkpoint.error().message;
}

std::vector<float> floats_of(const SourceTensor& tensor) {
  EXPECT_EQ(tensor.type, TensorType::kF32);
  std::vector<float> values(std::size_t{tensor.rows} * tensor.cols);
  std::memcpy(values.data(), tensor.data, values.size() * sizeof(float));
  return values;
}

TEST(Checkpoint, OpensATinyModelOfEveryArchitecture) {
  for (const TinyModel& model : one_tiny_model_per_arch()) {
    auto opened = open_bytes(write_tiny_model(model).bytes());
    ASSERT_TRUE(opened) << model.arch << ": " << opened.error().message;
    const Checkpoint& checkpoint = **opened;
    EXPECT_EQ(checkpoint.spec().architecture, model.arch);
    EXPECT_EQ(checkpoint.spec().vocab_size, testing::kTinyVocab);
    EXPECT_EQ(checkpoint.spec().tied_embeddings, model.tied);
    EXPECT_EQ(checkpoint.tensor(Role::kOutput).has_value(), !model.tied);
    EXPECT_EQ(checkpoint.tensor(Role::kQBias, 1).has_value(), model.qkv_bias);
    EXPECT_EQ(checkpoint.tensor(Role::kQNorm, 1).has_value(), model.qk_norm);
    EXPECT_EQ(checkpoint.tensor(Role::kPostFfnNorm, 1).has_value(), model.post_norms);
    EXPECT_FALSE(checkpoint.tensor(Role::kQ, model.layers));
    const auto down = checkpoint.tensor(Role::kDown, 0);
    ASSERT_TRUE(down);
    EXPECT_EQ(down->rows, model.width);
    EXPECT_EQ(down->cols, model.ffn_width);
    EXPECT_THAT(checkpoint.info().warnings, ElementsAre());
  }
}

TEST(Checkpoint, BringsQAndKToHalfSplitOrder) {
  const TinyModel model{.arch = "llama", .layers = 1, .qkv_bias = true};
  const std::string bytes = write_tiny_model(model).bytes();
  auto llama = open_bytes(bytes);
  ASSERT_TRUE(llama) << llama.error().message;
  TinyModel same = model;
  same.arch = "qwen2";  // the same tensors in a row that does not interleave
  auto plain = open_bytes(write_tiny_model(same).bytes());
  ASSERT_TRUE(plain) << plain.error().message;
  const std::vector<std::pair<Role, Role>> roles = {{Role::kQ, Role::kQBias}, {Role::kK, Role::kKBias}};
  for (const auto& [matrix, bias] : roles) {
    const auto stored = floats_of(*(*plain)->tensor(matrix)), split = floats_of(*(*llama)->tensor(matrix));
    const auto stored_bias = floats_of(*(*plain)->tensor(bias)), split_bias = floats_of(*(*llama)->tensor(bias));
    for (std::uint32_t row = 0; row < stored_bias.size(); ++row) {
      const std::uint32_t head = row / 16, i = row % 16;
      const std::uint32_t from = head * 16 + (i < 8 ? 2 * i : 2 * (i - 8) + 1);
      ASSERT_EQ(split_bias[row], stored_bias[from]);
      for (std::uint32_t c = 0; c < 64; ++c) ASSERT_EQ(split[row * 64 + c], stored[from * 64 + c]);
    }
  }
  EXPECT_EQ(floats_of(*(*plain)->tensor(Role::kV)), floats_of(*(*llama)->tensor(Role::kV)));
}

TEST(Checkpoint, NamesWhatItCannotUse) {
  const TinyModel model;
  const auto tiny = [&] { return write_tiny_model(model); };
  EXPECT_THAT(error_of(GgufWriter().set("general.architecture", "mamba"), ErrorCode::kUnsupported),
              ::testing::AllOf(HasSubstr("'mamba'"), HasSubstr("llama, qwen2")));
  EXPECT_THAT(error_of(GgufWriter(), ErrorCode::kInvalidArgument), HasSubstr("general.architecture is missing"));
  EXPECT_THAT(error_of(GgufWriter().set("general.architecture", "llama"), ErrorCode::kInvalidArgument),
              HasSubstr("llama.block_count is missing"));
  EXPECT_THAT(error_of(tiny().set("llama.expert_count", 8U), ErrorCode::kUnsupported), HasSubstr("experts (8)"));
  EXPECT_THAT(error_of(tiny().set("llama.rope.scaling.type", "yarn"), ErrorCode::kUnsupported), HasSubstr("'yarn'"));
  EXPECT_THAT(error_of(tiny().set("llama.attention.causal", false), ErrorCode::kUnsupported), HasSubstr("causal"));
  EXPECT_THAT(error_of(tiny().add_f32("blk.0.attn_output.bias", {64}, std::vector<float>(64)), ErrorCode::kUnsupported),
              HasSubstr("blk.0.attn_output.bias"));
  TinyModel qwen = model;
  qwen.arch = "qwen2";  // needs biases
  EXPECT_THAT(error_of(write_tiny_model(qwen), ErrorCode::kCorrupt), HasSubstr("blk.0.attn_q.bias is missing"));
  EXPECT_THAT(error_of(tiny().set("llama.vocab_size", "many"), ErrorCode::kInvalidArgument), HasSubstr("is string"));
}

TEST(Checkpoint, ChecksShapesAgainstTheSizes) {
  std::string bytes = write_tiny_model({}).bytes();
  const std::size_t at = bytes.find("llama.feed_forward_length") + std::strlen("llama.feed_forward_length") + 4;
  bytes[at] = 97;
  auto opened = open_bytes(bytes);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message,
              HasSubstr("blk.0.ffn_gate.weight has shape [96, 64], the model's sizes need [97, 64]"));
}

TEST(Checkpoint, TellsIgnoredKeys) {
  auto opened = open_bytes(write_tiny_model({}).set("llama.attention.novelty", 1U).bytes());
  ASSERT_TRUE(opened);
  EXPECT_THAT((*opened)->info().warnings, ElementsAre("metadata key llama.attention.novelty is ignored"));
}

TEST(Checkpoint, ReadsRopeFactorsAndScaling) {
  const std::vector<float> factors{1, 1, 1, 1, 2, 4, 8, 8};
  auto opened = open_bytes(write_tiny_model({}).add_f32("rope_freqs.weight", {8}, factors).bytes());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->spec().ropes.at(0).factors, factors);
  EXPECT_THAT(error_of(write_tiny_model({}).add_f32("rope_freqs.weight", {1}, {1}), ErrorCode::kInvalidArgument),
              HasSubstr("rope factors"));
  opened = open_bytes(
      write_tiny_model({}).set("llama.rope.scaling.type", "linear").set("llama.rope.scaling.factor", 4.0F).bytes());
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->spec().ropes.at(0).linear_factor, 4.0F);
}

TEST(Checkpoint, ReadsWindowPatternsAsPeriodOrFlags) {
  TinyModel model{.arch = "gemma3", .layers = 4, .kv_heads = 1, .window = 32, .qk_norm = true, .post_norms = true};
  const auto windows = [](Result<std::unique_ptr<Checkpoint>> opened) {
    std::vector<std::uint32_t> out;
    if (!opened) return out;
    for (const LayerInfo& layer : (*opened)->info().layers) out.push_back(layer.window);
    return out;
  };
  const char* key = "gemma3.attention.sliding_window_pattern";
  EXPECT_THAT(windows(open_bytes(write_tiny_model(model).bytes())), ElementsAre(32, 32, 32, 32));
  EXPECT_THAT(windows(open_bytes(write_tiny_model(model).set(key, 2U).bytes())), ElementsAre(32, 0, 32, 0));
  const auto flags = testing::Bytes()
                         .number(GgufValueType::kArray)
                         .number(GgufValueType::kBool)
                         .number<std::uint64_t>(4)
                         .raw("\1\0\0\1", 4);
  EXPECT_THAT(windows(open_bytes(write_tiny_model(model).set_raw(key, flags).bytes())), ElementsAre(32, 0, 0, 32));
}

TEST(Checkpoint, IdentifiesTheWeights) {
  const std::string bytes = write_tiny_model({}).bytes();
  const TempFile file(bytes);
  const auto key = [&] { return (*open_checkpoint(file.path()))->source_key(); };
  const std::string first = key();
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(key(), first);
  testing::flip_bit(file.path(), bytes.size() - 1);  // the last weight
  EXPECT_NE(key(), first);
  testing::flip_bit(file.path(), bytes.size() - 1);
  testing::flip_bit(file.path(), bytes.find("tiny llama"));
  EXPECT_NE(key(), first);
  EXPECT_NE((*open_bytes(bytes))->source_key(), first) << "the same bytes in another file";
}

TEST(Checkpoint, KeepsVocabularyOnlyFilesForInspection) {
  GgufWriter writer;
  writer.set("general.architecture", "llama")
      .set("llama.block_count", 2U)
      .set("llama.context_length", 512U)
      .set("llama.embedding_length", 64U)
      .set("llama.feed_forward_length", 128U)
      .set("llama.attention.head_count", 4U)
      .set("llama.attention.layer_norm_rms_epsilon", 1e-5F)
      .set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  EXPECT_THAT(error_of(writer, ErrorCode::kInvalidArgument), HasSubstr("a vocabulary and no weights"));
  const TempFile file(writer.bytes());
  auto info = read_model_info(file.path(), KvType::kF32);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->vocab_size, 2U);
  EXPECT_EQ(info->attention_kind, "MHA");
  EXPECT_EQ(info->kv_bytes_per_token, 2U * 2 * 64 * 4);  // layers, K and V, width, f32
}

TEST(Checkpoint, SurvivesDamageToTheHeader) {
  const std::string original = write_tiny_model({.layers = 1, .width = 16, .heads = 1, .kv_heads = 1}).bytes();
  const std::size_t header = original.find("token_embd.weight");  // metadata; the table's flips are the parser's test
  std::mt19937_64 random(7);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = original;
    const std::size_t bit = random() % (header * 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const auto opened = open_bytes(bytes);
    if (opened) continue;
    ++refused;
    EXPECT_THAT(opened.error().message, HasSubstr("test.gguf"));
  }
  EXPECT_GT(refused, 30);
}

TEST(RealModels, SmolLm2OpensWithItsNumbers) {
  const std::string path = model_path("smollm2");
  if (path.empty()) GTEST_SKIP() << "smollm2 has not been downloaded, so its numbers are not checked";
  auto opened = open_checkpoint(path);
  ASSERT_TRUE(opened) << opened.error().message;
  const ModelSpec& spec = (*opened)->spec();
  EXPECT_EQ(spec.layers.size(), 30U);
  EXPECT_EQ(spec.width, 576U);
  EXPECT_EQ(spec.vocab_size, 49152U);
  EXPECT_EQ(spec.context_length, 8192U);
  EXPECT_EQ(spec.layers[29].num_heads, 9U);
  EXPECT_EQ(spec.layers[29].num_kv_heads, 3U);
  EXPECT_EQ(spec.layers[29].head_dim, 64U);
  EXPECT_EQ(spec.attn_scale, 0.125F);
  EXPECT_EQ(spec.ropes.at(0).base, 100000.0F);
  EXPECT_TRUE(spec.tied_embeddings);
  const ModelInfo& info = (*opened)->info();
  EXPECT_EQ(info.parameters, 134515008U);
  EXPECT_EQ(info.attention_kind, "GQA 9/3");
  EXPECT_EQ(info.kv_bytes_per_token, 30U * 2 * 3 * 64 * 2);
  EXPECT_EQ(info.tensor_types.at("F32").tensors, 61U);
  EXPECT_THAT(info.warnings, ElementsAre());
  EXPECT_TRUE(info.chat_template.has_value());
}

TEST(RealModels, Gemma3OpensWithTheDefaultsOfItsRow) {
  const std::string path = model_path("gemma3-270m");
  if (path.empty()) GTEST_SKIP() << "gemma3-270m has not been downloaded, so its numbers are not checked";
  auto opened = open_checkpoint(path);
  ASSERT_TRUE(opened) << opened.error().message;
  const ModelSpec& spec = (*opened)->spec();
  ASSERT_EQ(spec.layers.size(), 18U);
  EXPECT_EQ(spec.vocab_size, 262144U);
  EXPECT_EQ(spec.embedding_scale, std::sqrt(640.0F));
  EXPECT_EQ(spec.attn_scale, 1.0F / 16);
  ASSERT_EQ(spec.ropes.size(), 2U);
  EXPECT_EQ(spec.ropes[0].rot_dims, 256U);
  EXPECT_EQ(spec.ropes[1].base, 10000.0F);
  for (std::uint32_t i = 0; i < 18; ++i) EXPECT_EQ(spec.layers[i].window, i % 6 == 5 ? 0U : 512U);
  EXPECT_EQ((*opened)->info().attention_kind, "MQA 4/1");
  EXPECT_EQ((*opened)->info().parameters, 268098176U);
  EXPECT_FALSE((*opened)->info().chat_template);
}

class TinyGoldens : public ::testing::TestWithParam<const char*> {};

TEST_P(TinyGoldens, Open) {
  const std::string folder = oracle_path(std::string("logits/tiny/") + GetParam());
  if (folder.empty()) GTEST_SKIP() << "the reference data is not there, so its folders are not opened";
  auto opened = open_checkpoint(folder);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->spec().vocab_size, 288U);
  EXPECT_EQ((*opened)->info().format, "safetensors");
  EXPECT_EQ((*opened)->info().name, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Families, TinyGoldens,
                         ::testing::Values("llama", "llama3-rope", "mistral", "qwen2", "qwen3", "gemma3"),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

TEST(TinyGoldensGemma3, StoresGainsMinusOne) {
  const std::string folder = oracle_path("logits/tiny/gemma3");
  if (folder.empty()) GTEST_SKIP() << "the reference data is not there, so its folders are not opened";
  auto opened = open_checkpoint(folder);
  ASSERT_TRUE(opened) << opened.error().message;
  double sum = 0;
  const auto gains = floats_of(*(*opened)->tensor(Role::kAttnNorm, 0));
  for (const float gain : gains) sum += gain;
  EXPECT_NEAR(sum / static_cast<double>(gains.size()), 1.0, 0.3);
  const ModelSpec& spec = (*opened)->spec();
  EXPECT_EQ(spec.attn_scale, static_cast<float>(1 / std::sqrt(24.0)));
  EXPECT_EQ(spec.layers[0].window, 8U);
  EXPECT_EQ(spec.layers[1].window, 0U);
  EXPECT_EQ(spec.ropes.size(), 2U);
}

}  // namespace
}  // namespace octavo
