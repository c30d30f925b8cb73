// Every case of the reference tokenizers whose vocabulary is at hand, against Hugging Face's answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "octavo/tokenizer.h"

namespace octavo {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

fs::path oracle_folder() {
  const char* named = std::getenv("OCTAVO_ORACLES");
  return named != nullptr ? fs::path(named) : fs::path(OCTAVO_SOURCE_DIR) / "../shared/oracles";
}

fs::path model_folder() {
  if (const char* named = std::getenv("OCTAVO_MODELS")) return named;
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : ".") / ".cache/octavo/models";
}

json read_json(const fs::path& path) { return json::parse(std::ifstream(path)); }

std::vector<TokenId> ids_of(const json& array) {
  std::vector<TokenId> ids;
  for (const json& id : array) ids.push_back(TokenId{id.get<std::int32_t>()});
  return ids;
}

struct OracleCase {
  std::string name;     // of the oracle file
  fs::path vocabulary;  // GGUF
};

void PrintTo(const OracleCase& one, std::ostream* out) { *out << one.name; }

class TokenizerOracle : public testing::TestWithParam<OracleCase> {
 protected:
  void SetUp() override {
    const fs::path file = oracle_folder() / "tokenizers" / (GetParam().name + ".json");
    if (!fs::exists(file)) GTEST_SKIP() << "no reference data at " << file << "; set OCTAVO_ORACLES";
    if (!fs::exists(GetParam().vocabulary)) {
      GTEST_SKIP() << "no vocabulary at " << GetParam().vocabulary << "; set OCTAVO_MODELS";
    }
    oracle_ = read_json(file);
    auto loaded = load_tokenizer(GetParam().vocabulary.string());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    tokenizer_ = std::move(*loaded);
  }

  std::string decode(const json& ids, bool skip_special) const {
    const auto text = tokenizer_->decode(ids_of(ids), skip_special);
    return text ? *text : "error: " + text.error().message;
  }

  json oracle_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(TokenizerOracle, Encodes) {
  for (const json& one : oracle_["cases"]) {
    const std::string name = one["name"], text = one["text"];
    const auto expect = [&](const char* field, const json& ids, EncodeOptions options) {
      EXPECT_EQ(tokenizer_->encode(text, options), ids_of(ids)) << name << " " << field;
    };
    expect("ids", one["ids"], {.add_special = false, .parse_special = true});
    expect("ids_special", one["ids_special"], {.add_special = true, .parse_special = true});
    expect("ids_plain", one.value("ids_plain", one["ids"]), {.add_special = false, .parse_special = false});
    if (tokenizer_->bos() && one["ids_special"].size() > one["ids"].size()) {
      json plain_special = one.value("ids_plain", one["ids"]);
      plain_special.insert(plain_special.begin(), one["ids_special"][0]);
      expect("ids_plain", plain_special, {.add_special = true, .parse_special = false});
    }
  }
}

TEST_P(TokenizerOracle, Decodes) {
  for (const json& one : oracle_["cases"]) {
    const std::string name = one["name"];
    EXPECT_EQ(decode(one["ids"], false), one["decoded"]) << name;
    EXPECT_EQ(decode(one["ids"], true), one.value("decoded_skip", one["decoded"])) << name;
  }
  for (const json& one : oracle_["decode_cases"]) {
    for (std::size_t i = 0; i < one["ids"].size(); ++i) {
      const json prefix(std::vector<json>(one["ids"].begin(), one["ids"].begin() + static_cast<std::ptrdiff_t>(i) + 1));
      EXPECT_EQ(decode(prefix, false), one["prefixes"][i]) << one["name"] << " prefix " << i;
      EXPECT_EQ(decode(json::array({one["ids"][i]}), false), one["singles"][i]) << one["name"] << " single " << i;
    }
  }
}

TEST_P(TokenizerOracle, ReplacesInvalidUtf8) {
  for (const json& one : read_json(oracle_folder() / "tokenizers/invalid_utf8.json")) {
    if (!one["ids"].contains(GetParam().name)) continue;
    const std::string hex = one["hex"];
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    EXPECT_EQ(tokenizer_->encode(bytes, {.add_special = false}), ids_of(one["ids"][GetParam().name])) << one["name"];
  }
}

TEST_P(TokenizerOracle, AStreamOfRandomIdsGivesWhatDecodeGives) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int32_t> any(0, static_cast<std::int32_t>(tokenizer_->vocab_size()) - 1);
  std::uniform_int_distribution<std::int32_t> low(0, 511);  // where the single bytes are
  for (int round = 0; round < 200; ++round) {
    std::vector<TokenId> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(TokenId{i % 3 == 0 ? any(random) : low(random)});
    const bool skip_special = round % 2 == 0;
    const auto stream = tokenizer_->detokenizer(skip_special);
    std::string streamed;
    for (const TokenId id : ids) streamed += stream->push(id);
    streamed += stream->finish();
    const auto whole = tokenizer_->decode(ids, skip_special);
    ASSERT_TRUE(whole.ok());
    EXPECT_EQ(streamed, *whole);
  }
}

// The vocab-*.gguf files are made by tools/bpe_json_to_gguf.py from tokenizer.json files that are too large to keep.
const OracleCase kCases[] = {
    {"smollm2", model_folder() / "smollm2.gguf"},
    {"gemma3", model_folder() / "gemma3-270m.gguf"},
    {"llama2", oracle_folder() / "tokenizers/files/ggml-vocab-llama-spm.gguf"},
    {"llama3", model_folder() / "vocab-llama3.gguf"},
    {"llama3_1", model_folder() / "vocab-llama3_1.gguf"},
    {"qwen3", model_folder() / "vocab-qwen3.gguf"},
};

INSTANTIATE_TEST_SUITE_P(Reference, TokenizerOracle, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace octavo
