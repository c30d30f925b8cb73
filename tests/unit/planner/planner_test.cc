// The arithmetic of KV memory: every fact that people get wrong, as a number.
#include "octavo/planner.h"

#include <gtest/gtest.h>

#include <string>

#include "capacity/memory_plan.h"
#include "octavo/model_shape.h"

namespace octavo::testing {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kGiB = kMiB << 10;

ModelShape shape(const std::string& name, const std::string& format = "") {
  auto read = read_model_shape(name, format);
  EXPECT_TRUE(read) << name << ": " << (read ? "" : read.error().message);
  return read ? *read : ModelShape();
}

MemoryQuestion asks(std::uint32_t batch, std::uint32_t length, KvType type = KvType::kF16) {
  MemoryQuestion question;
  question.engine.kv_type = type;
  question.engine.kv_fraction = 1;
  question.memory = 1024 * kGiB;
  question.threads = 8;
  question.batch = batch, question.length = length;
  return question;
}

MemoryPlan plan(const ModelShape& model, const MemoryQuestion& question) {
  auto made = plan_memory(model, question);
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? *made : MemoryPlan();
}

std::uint64_t kv_bytes(const std::string& name, std::uint32_t batch, std::uint32_t length) {
  return plan(shape(name), asks(batch, length)).kv_bytes;
}

ModelShape dense(std::uint32_t layers, std::uint32_t heads, std::uint32_t kv_heads) {
  ModelShape model = shape("llama-2-7b");
  model.layers.assign(layers, {heads, kv_heads, 128, 0, 0});
  return model;
}

TEST(KvFacts, PublishedModelsTakeWhatTheirShapesSay) {
  EXPECT_EQ(kv_bytes("llama-2-7b", 1, 4096), 2 * kGiB);
  EXPECT_EQ(kv_bytes("llama-2-7b", 1, 2048), 1 * kGiB);  // not 512 MB: keys and values, at two bytes each
  EXPECT_EQ(kv_bytes("llama-2-13b", 1, 2048), 1600 * kMiB);
  EXPECT_EQ(kv_bytes("llama-65b", 1, 2048), 5 * kGiB);
  EXPECT_EQ(kv_bytes("llama-2-70b", 32, 8192), 80 * kGiB);
}

TEST(KvFacts, KvHeadsCountAndQueryHeadsDoNot) {
  const auto bytes = [](std::uint32_t layers, std::uint32_t heads, std::uint32_t kv_heads) {
    return plan(dense(layers, heads, kv_heads), asks(1, 2048)).kv_bytes;
  };
  EXPECT_EQ(bytes(80, 64, 64), 5 * kGiB);
  EXPECT_EQ(bytes(80, 80, 80), 6400 * kMiB);  // what it were with 80 heads
  EXPECT_EQ(bytes(80, 64, 8), bytes(80, 128, 8));
  EXPECT_EQ(bytes(32, 32, 8) * 4, bytes(32, 32, 32));   // GQA: 0.25 x
  EXPECT_EQ(bytes(32, 32, 1) * 32, bytes(32, 32, 32));  // MQA: 1/32
}

TEST(KvFacts, SevenAndThirteenBillionAreMultiHeadSeventyIsGrouped) {
  for (const char* name : {"llama-2-7b", "llama-2-13b", "llama-65b"}) {
    for (const LayerShape& layer : shape(name).layers) EXPECT_EQ(layer.num_kv_heads, layer.num_heads) << name;
  }
  for (const LayerShape& layer : shape("llama-2-70b").layers) {
    EXPECT_EQ(layer.num_heads, 64U);
    EXPECT_EQ(layer.num_kv_heads, 8U);
  }
  const ModelShape large = shape("llama-65b");
  EXPECT_EQ(large.layers.size(), 80U);
  EXPECT_EQ(large.layers[0].num_heads, 64U);
  EXPECT_EQ(large.width, 8192U);
}

TEST(KvFacts, GroupingAndTypesChangeTheFactorAndNotTheGrowth) {
  for (const ModelShape& model : {dense(32, 32, 32), dense(32, 32, 8), dense(32, 32, 1)}) {
    for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16}) {
      const std::uint64_t once = plan(model, asks(1, 1024, type)).kv_bytes;
      EXPECT_EQ(plan(model, asks(1, 2048, type)).kv_bytes, 2 * once);
      EXPECT_EQ(plan(model, asks(8, 1024, type)).kv_bytes, 8 * once);
    }
    EXPECT_EQ(plan(model, asks(1, 1024, KvType::kF32)).kv_bytes, 2 * plan(model, asks(1, 1024)).kv_bytes);
  }
}

TEST(KvFacts, PagingRemovesWasteAndNotWhatIsKept) {
  const ModelShape model = shape("llama-2-7b");
  MemoryQuestion paged = asks(4, 1000), fixed = asks(4, 1000);
  fixed.engine.kv_memory = KvMemory::kStatic;
  fixed.engine.max_model_len = 4096;
  const MemoryPlan in_pages = plan(model, paged), in_runs = plan(model, fixed);
  EXPECT_EQ(in_pages.kv_bytes, in_runs.kv_bytes);
  EXPECT_EQ(in_pages.kv_bytes, 4 * 1000 * in_pages.bytes_per_token);
  EXPECT_EQ(in_pages.kv_charged_bytes, 4 * 1008 * in_pages.bytes_per_token);
  EXPECT_EQ(in_runs.kv_charged_bytes, 4 * 4096 * in_runs.bytes_per_token);
}

TEST(KvFacts, WindowsCapWhatIsKept) {
  const ModelShape gemma = shape("gemma-3-1b");  // 22 of 26 layers see 512 tokens
  const MemoryPlan at_window = plan(gemma, asks(1, 512)), beyond = plan(gemma, asks(1, 1024));
  std::uint64_t full = 0;
  for (const KvLayersPlan& kind : beyond.kv_layers) {
    if (kind.window == 0) full += kind.bytes_per_token;
  }
  ASSERT_EQ(beyond.kv_layers.size(), 2U);
  EXPECT_EQ(beyond.kv_layers[0].kind, "window 512");
  EXPECT_EQ(beyond.kv_layers[0].layers, 22U);
  EXPECT_EQ(beyond.kv_bytes, at_window.kv_bytes + 512 * full);
}

TEST(KvFacts, LatentLayersKeepOneVectorForAllHeads) {
  const ModelShape deepseek = shape("deepseek-v3");
  EXPECT_NE(deepseek.unsupported, "");
  const MemoryPlan made = plan(deepseek, asks(1, 1000));
  EXPECT_EQ(made.bytes_per_token, 70'272U);
  EXPECT_EQ(made.kv_bytes, 70'272'000U);
  EXPECT_EQ(made.kv_layers.at(0).kind, "latent");
}

TEST(MaxBatch, IsWhatWeightsAndBuffersLeaveOverKvOfARequest) {
  const ModelShape model = shape("llama-2-7b");
  MemoryQuestion question = asks(1, 4096);
  question.memory = 24 * kGiB;
  const MemoryPlan made = plan(model, question);
  std::uint64_t rest = 0;
  for (const MemoryTag& tag : made.tags) rest += tag.tag == "kv pool" || tag.tag == "swap" ? 0 : tag.bytes;
  EXPECT_GE(rest, made.weights_bytes + made.activations_bytes);
  EXPECT_LT(rest, made.weights_bytes + made.activations_bytes + 256 * kMiB);
  EXPECT_EQ(made.max_batch, (24 * kGiB - rest) / (2 * kGiB));
  EXPECT_TRUE(made.fits);
  EXPECT_LE(made.total_bytes, made.memory_bytes);
}

TEST(MaxBatch, TheAnswerIsExact) {
  const ModelShape model = shape("llama-3.2-1b");
  MemoryQuestion question = asks(1, 2048);
  question.memory = 8 * kGiB;
  question.engine.max_num_seqs = 512;
  const MemoryPlan made = plan(model, question);
  question.batch = static_cast<std::uint32_t>(made.max_batch);
  EXPECT_TRUE(plan(model, question).fits);
  ++*question.batch;
  const MemoryPlan more = plan(model, question);
  EXPECT_FALSE(more.fits);
  EXPECT_NE(more.nearest.find("--batch " + std::to_string(made.max_batch)), std::string::npos) << more.nearest;
}

TEST(Plan, TellsWhatWouldFit) {
  MemoryQuestion question = asks(32, 8192);
  question.memory = 160 * kGiB;
  const ModelShape model = shape("llama-2-70b");
  const MemoryPlan made = plan(model, question);
  EXPECT_FALSE(made.fits);
  EXPECT_NE(made.why_not, "");
  EXPECT_NE(made.nearest.find("GiB of memory"), std::string::npos) << made.nearest;
  EXPECT_EQ(made.kv_bytes, 80 * kGiB);
}

TEST(Plan, WeightsThatDoNotFitAreNoError) {
  MemoryQuestion question = asks(1, 2048);
  question.memory = 8 * kGiB;
  const MemoryPlan made = plan(shape("llama-65b"), question);
  EXPECT_FALSE(made.fits);
  EXPECT_EQ(made.max_batch, 0U);
  EXPECT_EQ(made.kv_bytes, 5 * kGiB);
}

TEST(Plan, RefusesZeroAbsurdAndContradictoryNumbers) {
  const ModelShape model = shape("llama-2-7b");
  const auto refused = [&](const MemoryQuestion& question, const std::string& words) {
    const auto made = plan_memory(model, question);
    ASSERT_FALSE(made) << words;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(made.error().message.find(words), std::string::npos) << made.error().message;
  };
  MemoryQuestion question = asks(1, 1);
  question.memory = 0;
  refused(question, "--memory 0");
  refused(asks(0, 1), "--batch 0");
  refused(asks(1, 0), "--length 0");
  refused(asks(65, 1), "--max-num-seqs");
  refused(asks(1, 1U << 30), "--length");
  question = asks(1, 2000);
  question.engine.max_model_len = 1000;
  refused(question, "--max-model-len 1000");
  question = asks(1, 1);
  question.engine.kv_bytes = 0;
  refused(question, "--kv-bytes 0");
  question = asks(1, 1);
  question.engine.block_tokens = 7;
  refused(question, "--block-size 7");
}

TEST(Plan, ExplainsWithTheNumbers) {
  const ModelShape model = shape("llama-2-70b");
  const MemoryQuestion question = asks(32, 8192);
  const std::string text = explain(model, question, plan(model, question));
  for (const char* part : {"2 x 80 x 8 x 128 x 2 = 327,680 bytes", "80 GiB", "64 query heads share 8 KV heads",
                           "largest batch = (memory - weights - activations - the rest) / KV of a request"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

}  // namespace
}  // namespace octavo::testing
