// Any bytes as text for small vocabularies of both kinds. Besides not crashing: byte-level tokens give back the text
// they came from, and a stream of ids reads the same in pieces as whole.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/tiny_model.h"
#include "text/utf8.h"
#include "text/vocab.h"

namespace octavo {
namespace {

std::unique_ptr<Tokenizer> byte_bpe(const char* pre) {
  Vocab vocab;
  vocab.kind = VocabKind::kByteBpe;
  vocab.pre = pre;
  for (std::uint32_t byte = 0; byte < 256; ++byte) vocab.tokens.push_back(testing::byte_symbol(byte));
  for (const char* merged : {"th", "the", "an", "11", "\u0120t"}) vocab.tokens.emplace_back(merged);
  vocab.merges = {"t h", "th e", "a n", "1 1", "\u0120 t"};
  vocab.kinds.assign(vocab.tokens.size(), TokenKind::kNormal);
  vocab.tokens.emplace_back("<|end|>");
  vocab.kinds.push_back(TokenKind::kControl);
  return std::move(*make_tokenizer(std::move(vocab)));
}

std::unique_ptr<Tokenizer> sentence_pieces() {
  Vocab vocab;
  vocab.kind = VocabKind::kSpm;
  const auto add = [&](std::string token, float score, TokenKind kind) {
    vocab.tokens.push_back(std::move(token));
    vocab.scores.push_back(score);
    vocab.kinds.push_back(kind);
  };
  add("<unk>", 0, TokenKind::kUnknown);
  constexpr char kHex[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    add(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">", 0, TokenKind::kByte);
  }
  for (const char* piece : {"\u2581", "t", "h", "e", "th", "the", "\u2581the", "a", "n", "an"}) {
    add(piece, -static_cast<float>(vocab.tokens.size()), TokenKind::kNormal);
  }
  add("<tag>", 0, TokenKind::kUserDefined);
  vocab.unknown = TokenId{0};
  return std::move(*make_tokenizer(std::move(vocab)));
}

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const Tokenizer& tokenizer, std::string_view text, bool gives_back_text) {
  const std::vector<TokenId> ids = tokenizer.encode(text, {.add_special = false, .parse_special = true});
  const auto whole = tokenizer.decode(ids, false);
  require(whole.ok());
  if (gives_back_text) require(*whole == replace_invalid_utf8(text));
  const auto stream = tokenizer.detokenizer(false);
  std::string pieces;
  for (const TokenId id : ids) pieces += stream->push(id);
  require(pieces + stream->finish() == *whole);
}

}  // namespace
}  // namespace octavo

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using octavo::Tokenizer;
  static const std::vector<std::unique_ptr<Tokenizer>> byte_level = [] {
    std::vector<std::unique_ptr<Tokenizer>> all;
    for (const char* pre : {"gpt-2", "llama-bpe", "smollm", "default"}) all.push_back(octavo::byte_bpe(pre));
    return all;
  }();
  static const std::unique_ptr<Tokenizer> pieces = octavo::sentence_pieces();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& tokenizer : byte_level) octavo::check(*tokenizer, text, true);
  octavo::check(*pieces, text, false);
  return 0;
}
