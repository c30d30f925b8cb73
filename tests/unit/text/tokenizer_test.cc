// Small vocabularies made here, so that a plain clone tests itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <random>

#include "text/pretokenizer.h"
#include "text/vocab.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> spelled_bytes() {
  std::vector<std::string> tokens;
  const auto add = [&](unsigned code_point) {
    if (code_point < 0x80) {
      tokens.push_back(std::string(1, static_cast<char>(code_point)));
    } else {
      tokens.push_back({static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))});
    }
  };
  for (unsigned c = '!'; c <= '~'; ++c) add(c);
  for (unsigned c = 0xA1; c <= 0xFF; ++c) {
    if (c != 0xAD) add(c);
  }
  for (unsigned c = 0x100; c < 0x144; ++c) add(c);
  return tokens;
}

// The 256 bytes, what the merges make, then a control and a user-defined token.
Vocab bpe_vocab(const std::vector<std::string>& merges = {"a b", "ab a", "b a", "Ġ a"},
                const std::string& pre = "gpt-2") {
  Vocab vocab;
  vocab.pre = pre;
  vocab.tokens = spelled_bytes();
  for (const std::string& merge : merges) {
    const std::size_t space = merge.find(' ');
    vocab.tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  vocab.kinds.assign(vocab.tokens.size(), TokenKind::kNormal);
  vocab.merges = merges;
  vocab.tokens.insert(vocab.tokens.end(), {"<|im_end|>", "<tool>", "<tool>x"});
  vocab.kinds.insert(vocab.kinds.end(), {TokenKind::kControl, TokenKind::kUserDefined, TokenKind::kUserDefined});
  return vocab;
}

Vocab spm_vocab() {
  Vocab vocab;
  vocab.kind = VocabKind::kSpm;
  vocab.add_space_prefix = true;
  const auto add = [&](std::string text, float score, TokenKind kind = TokenKind::kNormal) {
    vocab.tokens.push_back(std::move(text));
    vocab.scores.push_back(score);
    vocab.kinds.push_back(kind);
  };
  add("<unk>", 0, TokenKind::kUnknown);
  add("<s>", 0, TokenKind::kControl);
  add("</s>", 0, TokenKind::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
    add(text, 0, TokenKind::kByte);
  }
  for (const char* text : {"\u2581", "a", "b", "c"}) add(text, -100);
  add("ab", -2);
  add("bc", -1);
  add("\u2581a", -3);
  add("aa", -4);
  add("  ", -1000, TokenKind::kUserDefined);
  vocab.bos = TokenId{1};
  vocab.eos = TokenId{2};
  vocab.unknown = TokenId{0};
  vocab.add_bos = true;
  return vocab;
}

std::unique_ptr<Tokenizer> make(Vocab vocab) {
  auto made = make_tokenizer(std::move(vocab));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(*made);
}

Error refusal(Vocab vocab) {
  const auto made = make_tokenizer(std::move(vocab));
  EXPECT_FALSE(made.ok());
  return made.ok() ? Error{} : made.error();
}

// Each id's own text, in brackets.
std::string pieces(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  std::string out;
  for (const TokenId id : tokenizer.encode(text, options)) out += "[" + tokenizer.token_bytes(id) + "]";
  return out;
}

std::string split(std::string_view pre, std::string_view text) {
  std::string out;
  for (const std::string_view piece : find_pre_tokenizer(pre)->split(text)) out += "[" + std::string(piece) + "]";
  return out;
}

TEST(Tokenizer, NoTextHasFewerTokensThanItsLengthSays) {
  for (Vocab vocab : {bpe_vocab(), bpe_vocab({"a b", "ab a"}, "qwen2"), spm_vocab()}) {
    const auto tokenizer = make_tokenizer(std::move(vocab));
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    const std::uint32_t most = (*tokenizer)->most_bytes_per_token();
    EXPECT_GT(most, 1U);
    for (const char* text : {"abaabaaba aba", "<|im_end|><tool>x", "e\u0301\u1112\u1161\u11ab", "a\u2581a  a"}) {
      const auto ids = (*tokenizer)->encode(text, {.add_special = false});
      EXPECT_GE(ids.size() * most, std::string(text).size()) << text;
    }
  }
}

TEST(PreTokenizer, Gpt2) {
  EXPECT_EQ(split("gpt-2", "I'm  12 x!?\n\n y"), "[I]['m][ ][ 12][ x][!?][\n\n][ y]");
  EXPECT_EQ(split("gpt-2", "I'M end  "), "[I]['][M][ end][  ]");
  EXPECT_EQ(split("gpt-2", ""), "");
}

TEST(PreTokenizer, Llama3) {
  EXPECT_EQ(split("llama-bpe", "I'M 12345\n\n  (x)...\n y  "), "[I]['M][ ][123][45][\n\n][ ][ (][x][)...\n][ y][  ]");
  EXPECT_EQ(split("llama-bpe", "a'\u017F \t\r\nb"), "[a]['\u017F][ \t\r\n][b]");
  EXPECT_EQ(split("qwen2", "123 \u0301a"), "[1][2][3][ \u0301][a]");
}

TEST(PreTokenizer, SmolLmSetsDigitsApart) { EXPECT_EQ(split("smollm", "ab  12 c"), "[ab][  ][1][2][ c]"); }

TEST(PreTokenizer, LosesNothingOfRandomText) {
  std::mt19937 random(3);
  const std::string_view alphabet[] = {" ",  "\n", "\r", "\t",     "'",  "s", "S",
                                       "ll", "7",  "!",  "\u0301", "漢", "½", "\u3000"};
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    for (int round = 0; round < 500; ++round) {
      std::string text, joined;
      for (int i = 0; i < 12; ++i) text += alphabet[random() % std::size(alphabet)];
      for (const std::string_view piece : find_pre_tokenizer(pre)->split(text)) {
        ASSERT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text);
    }
  }
}

TEST(ByteBpe, JoinsByRankThenFromTheLeft) {
  const auto tokenizer = make(bpe_vocab());
  EXPECT_EQ(pieces(*tokenizer, "aba"), "[aba]");
  EXPECT_EQ(pieces(*tokenizer, "bab"), "[b][ab]");  // "a b" is better than "b a"
  EXPECT_EQ(pieces(*tokenizer, "ababa"), "[ab][aba]");
  EXPECT_EQ(pieces(*tokenizer, "x a"), "[x][ a]");
  EXPECT_EQ(pieces(*tokenizer, ""), "");
}

TEST(ByteBpe, OfOverlappingPairsOfOneRankTheLeftWins) {
  const auto tokenizer = make(bpe_vocab({"a a"}));
  EXPECT_EQ(pieces(*tokenizer, "aaaaa"), "[aa][aa][a]");
}

TEST(ByteBpe, AWholePieceIsATokenWhereMergesAreIgnored) {
  Vocab vocab = bpe_vocab({}, "llama-bpe");
  vocab.tokens.push_back("zzz");
  vocab.kinds.push_back(TokenKind::kNormal);
  EXPECT_EQ(pieces(*make(vocab), "zzz"), "[zzz]");
  vocab.pre = "gpt-2";
  EXPECT_EQ(pieces(*make(vocab), "zzz"), "[z][z][z]");
}

TEST(ByteBpe, AByteWithoutATokenIsDropped) {
  Vocab vocab;
  vocab.tokens = {"a", "b"};
  EXPECT_EQ(pieces(*make(vocab), "axb"), "[a][b]");
}

TEST(ByteBpe, QwenNormalizesTheText) {
  const auto tokenizer = make(bpe_vocab({"Ã ©"}, "qwen2"));
  EXPECT_EQ(pieces(*tokenizer, "e\u0301"), "[\u00E9]");
}

TEST(SpecialTokens, TheLongestIsMatchedBeforeAnythingElse) {
  const auto tokenizer = make(bpe_vocab());
  EXPECT_EQ(pieces(*tokenizer, "a<tool>xb<tool>b"), "[a][<tool>x][b][<tool>][b]");
}

TEST(SpecialTokens, ControlTokensStayTextUnlessAskedFor) {
  const auto tokenizer = make(bpe_vocab());
  const TokenId end{static_cast<std::int32_t>(tokenizer->vocab_size()) - 3};
  EXPECT_THAT(tokenizer->encode("<|im_end|>", {.parse_special = true}), ElementsAre(end));
  EXPECT_EQ(pieces(*tokenizer, "<|im_end|>", {.parse_special = false}), "[<][|][i][m][_][e][n][d][|][>]");
  EXPECT_EQ(pieces(*tokenizer, "<tool>", {.parse_special = false}), "[<tool>]");
}

TEST(SpecialTokens, BosAndEosAsTheVocabularySays) {
  Vocab vocab = bpe_vocab();
  vocab.bos = TokenId{0};
  vocab.eos = TokenId{1};
  vocab.add_bos = vocab.add_eos = true;
  const auto tokenizer = make(vocab);
  const TokenId a{'a' - '!'};
  EXPECT_THAT(tokenizer->encode("a", {}), ElementsAre(TokenId{0}, a, TokenId{1}));
  EXPECT_THAT(tokenizer->encode("a", {.add_special = false}), ElementsAre(a));
}

TEST(SpecialTokens, AGenerationEndsWithASet) {
  Vocab vocab = bpe_vocab();
  vocab.eos = TokenId{5};
  vocab.eot = TokenId{5};
  const TokenId im_end{static_cast<std::int32_t>(vocab.tokens.size()) - 3};
  const auto tokenizer = make(vocab);
  const auto ends = tokenizer->end_of_generation();
  EXPECT_THAT(std::vector(ends.begin(), ends.end()), ElementsAre(TokenId{5}, im_end));
}

TEST(Spm, JoinsByScore) {
  const auto tokenizer = make(spm_vocab());
  EXPECT_EQ(pieces(*tokenizer, "abc", {.add_special = false}), "[ a][bc]");  // "bc" is better than "ab"
  EXPECT_EQ(pieces(*tokenizer, "baaa", {.add_special = false}), "[ ][b][aa][a]");
  EXPECT_EQ(pieces(*tokenizer, "", {}), "[<s>]");
}

TEST(Spm, FallsBackToBytesAndIsNotFooledByTheirNames) {
  const auto tokenizer = make(spm_vocab());
  EXPECT_EQ(pieces(*tokenizer, "a\u00E9", {.add_special = false}), "[ a][\xC3][\xA9]");
  EXPECT_EQ(tokenizer->encode("<0x41>", {.add_special = false}).size(), 7u);
}

TEST(Spm, WithoutBytesARunOfUnknownCharactersIsOneToken) {
  Vocab vocab = spm_vocab();
  for (TokenKind& kind : vocab.kinds) {
    if (kind == TokenKind::kByte) kind = TokenKind::kUnused;
  }
  EXPECT_EQ(pieces(*make(vocab), "xya", {.add_special = false}), "[ ][<unk>][a]");
}

TEST(Spm, MatchesSpacesOfUserDefinedTokens) {
  EXPECT_EQ(pieces(*make(spm_vocab()), "b  a", {.add_special = false}), "[ ][b][  ][ a]");
  EXPECT_EQ(pieces(*make(spm_vocab()), "b\u2581\u2581 a", {.add_special = false}), "[ ][b][  ][ ][ a]");
}

TEST(Spm, TakesBackTheSpaceItPutBefore) {
  const auto tokenizer = make(spm_vocab());
  for (const std::string text : {"ab", " ab", "a\u00E9 b", ""}) {
    const auto decoded = tokenizer->decode(tokenizer->encode(text, {}), true);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, text);
  }
}

TEST(Spm, EachByteOfABrokenCharacterIsReplaced) {
  const auto tokenizer = make(spm_vocab());
  auto ids = tokenizer->encode("\u20AC", {.add_special = false});
  ids.pop_back();
  EXPECT_EQ(*tokenizer->decode(ids, false), "\uFFFD\uFFFD");
}

TEST(Decode, AnIdOutsideTheVocabularyIsAnError) {
  const auto tokenizer = make(bpe_vocab());
  for (const std::int32_t id : {-1, static_cast<std::int32_t>(tokenizer->vocab_size())}) {
    const std::vector<TokenId> ids{TokenId{id}};
    const auto decoded = tokenizer->decode(ids, false);
    ASSERT_FALSE(decoded.ok());
    EXPECT_THAT(decoded.error().message, HasSubstr(std::to_string(id)));
    EXPECT_EQ(tokenizer->token_bytes(TokenId{id}), "");
  }
}

TEST(Stream, GivesOutWholeCharactersOnly) {
  const auto tokenizer = make(bpe_vocab());
  const auto ids = tokenizer->encode("\U0001F600!", {});
  ASSERT_EQ(ids.size(), 5u);
  const auto stream = tokenizer->detokenizer(true);
  EXPECT_THAT(stream->push(ids[0]), IsEmpty());
  EXPECT_THAT(stream->push(ids[1]), IsEmpty());
  EXPECT_THAT(stream->push(ids[2]), IsEmpty());
  EXPECT_EQ(stream->push(ids[3]), "\U0001F600");
  EXPECT_EQ(stream->push(ids[4]), "!");
  EXPECT_THAT(stream->push(ids[0]), IsEmpty());
  EXPECT_EQ(stream->finish(), "\uFFFD");
  EXPECT_THAT(stream->finish(), IsEmpty());
}

TEST(Stream, OfRandomIdsIsValidAndWhatDecodeGives) {
  std::mt19937 random(5);
  for (const Vocab& vocab : {bpe_vocab(), spm_vocab()}) {
    const auto tokenizer = make(vocab);
    for (int round = 0; round < 300; ++round) {
      const auto stream = tokenizer->detokenizer(round % 2 == 0);
      std::vector<TokenId> ids;
      std::string streamed;
      for (int i = 0; i < 40; ++i) {
        ids.push_back(TokenId{static_cast<std::int32_t>(random() % tokenizer->vocab_size())});
        streamed += stream->push(ids.back());
      }
      streamed += stream->finish();
      const auto whole = tokenizer->decode(ids, round % 2 == 0);
      ASSERT_TRUE(whole.ok());
      ASSERT_EQ(streamed, *whole);
    }
  }
}

TEST(Vocab, RefusesWhatContradictsItself) {
  Vocab vocab = bpe_vocab();
  vocab.pre = "tekken";
  EXPECT_EQ(refusal(vocab).code, ErrorCode::kUnsupported);
  EXPECT_THAT(refusal(vocab).message, HasSubstr("\"tekken\""));
  EXPECT_THAT(refusal(vocab).message, HasSubstr("llama-bpe"));

  vocab = bpe_vocab();
  vocab.kinds.pop_back();
  EXPECT_EQ(refusal(vocab).field, "tokenizer.ggml.token_type");

  vocab = bpe_vocab();
  vocab.merges.push_back("nospace");
  EXPECT_EQ(refusal(vocab).field, "tokenizer.ggml.merges");
  vocab.merges.back() = "q q";
  EXPECT_THAT(refusal(vocab).message, HasSubstr("q q"));

  vocab = bpe_vocab();
  vocab.eos = TokenId{1'000'000};
  EXPECT_EQ(refusal(vocab).field, "tokenizer.ggml.eos_token_id");

  vocab = bpe_vocab();
  vocab.add_bos = true;
  EXPECT_EQ(refusal(vocab).field, "tokenizer.ggml.add_bos_token");

  vocab = spm_vocab();
  vocab.scores.clear();
  EXPECT_EQ(refusal(vocab).field, "tokenizer.ggml.scores");
  EXPECT_EQ(refusal(Vocab{}).field, "tokenizer.ggml.tokens");
}

// A quadratic merge would take hours of processor time.
TEST(Tokenizer, TakesAMegabyteOfAnything) {
  constexpr std::size_t kMegabyte = 1 << 20;
  std::mt19937 random(7);
  std::string noise(kMegabyte, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  for (const Vocab& vocab : {bpe_vocab({"a a", "aa aa", "Ġ Ġ"}), bpe_vocab({"a a"}, "qwen2"), spm_vocab()}) {
    const auto tokenizer = make(vocab);
    for (const std::string& text : {std::string(kMegabyte, 'a'), std::string(kMegabyte, ' '), noise}) {
      const std::clock_t begin = std::clock();
      EXPECT_FALSE(tokenizer->encode(text, {}).empty());
      EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 20);
    }
  }
}

}  // namespace
}  // namespace octavo
