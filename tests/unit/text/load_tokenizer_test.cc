// From a GGUF file's metadata to a tokenizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "octavo/tokenizer.h"
#include "support/gguf_writer.h"

namespace octavo {
namespace {

using octavo::testing::GgufWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class LoadTokenizer : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("octavo_load_tokenizer_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<std::unique_ptr<Tokenizer>> load(const GgufWriter& writer) const {
    const fs::path file = folder_ / "vocab.gguf";
    std::ofstream(file, std::ios::binary) << writer.bytes();
    return load_tokenizer(file.string());
  }

  fs::path folder_;
};

GgufWriter spm_file() {
  GgufWriter writer;
  writer.set("tokenizer.ggml.model", "llama")
      .set("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>", "\u2581", "a", "\u2581a"})
      .set("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -3, -2, -1})
      .set("tokenizer.ggml.token_type", std::vector<std::int32_t>{2, 3, 3, 1, 1, 1});
  return writer;
}

TEST_F(LoadTokenizer, SpmDefaults) {
  const auto tokenizer = load(spm_file());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_THAT((*tokenizer)->encode("a", {}), ElementsAre(TokenId{1}, TokenId{5}));
  EXPECT_THAT((*tokenizer)->encode("a z", {}), ElementsAre(TokenId{1}, TokenId{5}, TokenId{3}, TokenId{0}));
  EXPECT_EQ((*tokenizer)->eos(), TokenId{2});
}

TEST_F(LoadTokenizer, SpmAsTheFileSays) {
  GgufWriter writer = spm_file();
  writer.set("tokenizer.ggml.add_bos_token", false).set("tokenizer.ggml.add_space_prefix", false);
  const auto tokenizer = load(writer);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_THAT((*tokenizer)->encode("a", {}), ElementsAre(TokenId{4}));
}

TEST_F(LoadTokenizer, ByteBpe) {
  GgufWriter writer;
  writer.set("tokenizer.ggml.model", "gpt2")
      .set("tokenizer.ggml.pre", "llama-bpe")
      .set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "ab", "<|eot_id|>"})
      .set("tokenizer.ggml.merges", std::vector<std::string>{"a b"})
      .set("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 1, 1, 3})
      .set("tokenizer.ggml.bos_token_id", std::uint32_t{3});
  const auto tokenizer = load(writer);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_THAT((*tokenizer)->encode("ab", {}), ElementsAre(TokenId{3}, TokenId{2}));
  EXPECT_EQ((*tokenizer)->end_of_generation().size(), 1u);
  EXPECT_THAT((*tokenizer)->description(), HasSubstr("llama-bpe"));
}

TEST_F(LoadTokenizer, NamesWhatItCannotRead) {
  GgufWriter other;
  other.set("tokenizer.ggml.model", "bert");
  EXPECT_EQ(load(other).error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(load(other).error().message, HasSubstr("\"bert\""));
  EXPECT_EQ(load(GgufWriter()).error().code, ErrorCode::kNotFound);

  GgufWriter pre = spm_file();
  pre.set("tokenizer.ggml.eos_token_id", std::uint32_t{77});
  EXPECT_THAT(load(pre).error().message, HasSubstr("77"));
  GgufWriter kinds = spm_file();
  kinds.set("tokenizer.ggml.bos_token_id", std::string("one"));
  EXPECT_THAT(load(kinds).error().message, HasSubstr("bos_token_id"));
}

TEST_F(LoadTokenizer, AFolder) {
  EXPECT_EQ(load_tokenizer(folder_.string()).error().code, ErrorCode::kNotFound);
  std::ofstream(folder_ / "tokenizer.json") << "{}";
  EXPECT_EQ(load_tokenizer(folder_.string()).error().code, ErrorCode::kUnsupported);
  EXPECT_FALSE(load_tokenizer((folder_ / "absent.gguf").string()).ok());
}

}  // namespace
}  // namespace octavo
