#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octavo/model_info.h"
#include "support/data_paths.h"
#include "support/tiny_model.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempFile;
using testing::write_tiny_model;

TEST(Inspect, DescribesModelAndTokenizer) {
  const TempFile file(write_tiny_model({}).bytes());
  auto info = inspect_model(file.path(), KvType::kF32);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->name, "tiny llama");
  EXPECT_EQ(info->attention_kind, "GQA 4/2");
  EXPECT_EQ(info->kv_bytes_per_token, 2U * 2 * 2 * 16 * 4);
  ASSERT_TRUE(info->tokenizer);
  EXPECT_EQ(info->tokenizer->vocab_size, testing::kTinyVocab);
  EXPECT_EQ(info->tokenizer->bos, TokenId{256});
  EXPECT_THAT(info->tokenizer->end_of_generation, ElementsAre(TokenId{257}));
  EXPECT_THAT(info->warnings, ElementsAre());
}

TEST(Inspect, TellsWhyATokenizerCannotBeUsed) {
  testing::GgufWriter writer;
  writer.set("general.architecture", "llama")
      .set("llama.block_count", 1U)
      .set("llama.context_length", 512U)
      .set("llama.embedding_length", 64U)
      .set("llama.feed_forward_length", 128U)
      .set("llama.attention.head_count", 4U)
      .set("llama.attention.layer_norm_rms_epsilon", 1e-5F)
      .set("tokenizer.ggml.model", "gpt2")
      .set("tokenizer.ggml.pre", "novel")
      .set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  const TempFile file(writer.bytes());
  auto info = inspect_model(file.path());
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_FALSE(info->tokenizer);
  ASSERT_EQ(info->warnings.size(), 1U);
  EXPECT_THAT(info->warnings[0], HasSubstr("novel"));
}

TEST(Inspect, KnowsTheRealModels) {
  const std::string path = testing::model_path("smollm2");
  if (path.empty()) GTEST_SKIP() << "smollm2 has not been downloaded, so its tokenizer is not described";
  auto info = inspect_model(path);
  ASSERT_TRUE(info) << info.error().message;
  ASSERT_TRUE(info->tokenizer);
  EXPECT_EQ(info->tokenizer->vocab_size, 49152U);
  EXPECT_FALSE(info->tokenizer->add_bos);
  EXPECT_TRUE(info->chat_template);
}

TEST(KvTypes, HaveNames) {
  EXPECT_STREQ(kv_type_name(KvType::kBF16), "bf16");
  EXPECT_EQ(*parse_kv_type("f16"), KvType::kF16);
  EXPECT_THAT(parse_kv_type("int3").error().message, HasSubstr("'int3'"));
}

}  // namespace
}  // namespace octavo
