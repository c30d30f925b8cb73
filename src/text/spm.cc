// SentencePiece's BPE as GGUF files carry it ("llama"): characters are joined to the piece with the best score, and a
// character that is no piece falls back to its bytes. Spaces are spelled "▁".
// Source of the method: Kudo and Richardson, "SentencePiece", 2018.
#include <algorithm>
#include <array>
#include <bit>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>
#include <optional>

#include "text/merge.h"
#include "text/token_model.h"
#include "text/utf8.h"

namespace octavo {

namespace {

constexpr std::string_view kSpace = "\u2581";

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  std::size_t begin = 0;
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, begin)) {
    out += text.substr(begin, at - begin);
    out += to;
    begin = at + from.size();
  }
  out += text.substr(begin);
  return out;
}

// "<0x0A>" is the byte 10.
std::optional<unsigned char> spelled_byte(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : token.substr(3, 2)) {
    const std::size_t digit = std::string_view("0123456789ABCDEF").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit);
  }
  return static_cast<unsigned char>(value);
}

// Costs are ordered as unsigned numbers, the best score first: the bits of a float, arranged so that they sort as it.
std::uint32_t cost_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(0.0f - score);  // 0 - 0 and 0 - -0 are the same zero
  return (bits & 0x80000000) != 0 ? ~bits : bits | 0x80000000;
}

class Spm final : public TokenModel {
 public:
  Spm(bool space_prefix, std::optional<TokenId> unknown) : space_prefix_(space_prefix), unknown_(unknown) {}

  Result<> load(const Vocab& vocab) {
    bytes_.reserve(vocab.tokens.size());
    pieces_.reserve(vocab.tokens.size());
    for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
      const TokenKind kind = vocab.kinds.empty() ? TokenKind::kNormal : vocab.kinds[i];
      OCTAVO_CHECK_OK(add(vocab.tokens[i], kind, vocab.scores[i], TokenId{static_cast<std::int32_t>(i)}));
    }
    return Ok{};
  }

  std::string respell(std::string_view token) const override { return replace_all(token, " ", kSpace); }

  void encode(std::string_view plain, std::vector<TokenId>& ids) const override {
    const std::string spelled = (space_prefix_ ? std::string(kSpace) : std::string()) + replace_all(plain, " ", kSpace);
    const std::string_view text = spelled;

    Merger merger;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = read_utf8(text, at).length;
      const Join* piece = find(text.substr(at, length));
      merger.push_back(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                       piece != nullptr ? std::optional(piece->id) : std::nullopt);
      at += length;
    }
    merger.merge([&](const Symbol& left, const Symbol& right) -> std::optional<Join> {
      const Join* piece = find(text.substr(left.begin, left.length + right.length));
      return piece != nullptr ? std::optional(*piece) : std::nullopt;
    });

    bool after_unknown = false;
    merger.for_each([&](const Symbol& symbol) {
      const std::string_view part = text.substr(symbol.begin, symbol.length);
      const bool unknown = !symbol.id && !has_bytes(part);
      if (symbol.id) {
        ids.push_back(*symbol.id);
      } else if (!unknown) {
        for (const char byte : part) ids.push_back(*of_byte_[static_cast<unsigned char>(byte)]);
      } else if (unknown_ && !after_unknown) {
        ids.push_back(*unknown_);  // one for a whole run
      }
      after_unknown = unknown;
    });
  }

  const std::vector<std::string>& bytes() const override { return bytes_; }
  bool replaces_each_byte() const override { return true; }
  bool strips_first_space() const override { return space_prefix_; }
  std::string description() const override {
    return space_prefix_ ? "SentencePiece BPE, space before the text" : "SentencePiece BPE";
  }

 private:
  Result<> add(const std::string& token, TokenKind kind, float score, TokenId id) {
    if (std::isnan(score)) {
      return Error{ErrorCode::kCorrupt, "the score of token " + std::to_string(id.value) + " is not a number",
                   "tokenizer.ggml.scores"};
    }
    switch (kind) {
      case TokenKind::kByte: {
        const std::optional<unsigned char> byte = spelled_byte(token);
        if (!byte) {
          return Error{ErrorCode::kCorrupt,
                       "token " + std::to_string(id.value) + " (\"" + token + "\") is a byte, but not like <0x0A>",
                       "tokenizer.ggml.tokens"};
        }
        of_byte_[*byte] = id;
        bytes_.emplace_back(1, static_cast<char>(*byte));
        break;
      }
      case TokenKind::kNormal:
      case TokenKind::kUserDefined: {
        std::string spelled = respell(token);
        longest_ = std::max(longest_, spelled.size());
        bytes_.push_back(replace_all(token, kSpace, " "));
        pieces_.try_emplace(std::move(spelled), Join{cost_of(score), id});
        break;
      }
      case TokenKind::kUnknown:
      case TokenKind::kControl:
      case TokenKind::kUnused: bytes_.push_back(token); break;
    }
    return Ok{};
  }

  const Join* find(std::string_view text) const {
    if (text.size() > longest_) return nullptr;
    const auto at = pieces_.find(text);
    return at == pieces_.end() ? nullptr : &at->second;
  }

  bool has_bytes(std::string_view text) const {
    return std::all_of(text.begin(), text.end(),
                       [&](char byte) { return of_byte_[static_cast<unsigned char>(byte)].has_value(); });
  }

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return boost::hash<std::string_view>()(text); }
  };

  bool space_prefix_;
  std::optional<TokenId> unknown_;
  std::vector<std::string> bytes_;
  boost::unordered_flat_map<std::string, Join, TextHash, std::equal_to<>> pieces_;  // what text may become
  std::size_t longest_ = 0;
  std::array<std::optional<TokenId>, 256> of_byte_;
};

}  // namespace

Result<std::unique_ptr<TokenModel>> make_spm(const Vocab& vocab) {
  auto model = std::make_unique<Spm>(vocab.add_space_prefix, vocab.unknown);
  OCTAVO_CHECK_OK(model->load(vocab));
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace octavo
