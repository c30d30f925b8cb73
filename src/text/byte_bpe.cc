// Byte-level BPE as GPT-2 introduced it: each byte is a symbol, spelled in the file as a printable character, and the
// ranked merges of the file join symbols inside the pieces that the pre-tokenizer cuts.
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <optional>

#include "text/merge.h"
#include "text/pretokenizer.h"
#include "text/token_model.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace octavo {

namespace {

using IdByText = boost::unordered_flat_map<std::string_view, TokenId>;

// Printable Latin-1 stands for itself; the other bytes, in order, are U+0100 and up.
constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char32_t, 256> kSpelling = [] {
  std::array<char32_t, 256> spelling{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) spelling[byte] = stands_for_itself(byte) ? byte : next++;
  return spelling;
}();

constexpr char32_t kSpellingEnd = 0x144;  // every spelling is below

constexpr auto kSpelledByte = [] {
  std::array<std::int16_t, kSpellingEnd> byte_of{};
  for (std::int16_t& byte : byte_of) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) byte_of[kSpelling[byte]] = static_cast<std::int16_t>(byte);
  return byte_of;
}();

// The bytes a token spells; nullopt when one of its characters spells none.
std::optional<std::string> unspell(std::string_view token) {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const Utf8Unit unit = read_utf8(token, at);
    if (!unit.valid || unit.code_point >= kSpellingEnd || kSpelledByte[unit.code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(kSpelledByte[unit.code_point]);
    at += unit.length;
  }
  return bytes;
}

class ByteBpe final : public TokenModel {
 public:
  explicit ByteBpe(const PreTokenizer& pre) : pre_(pre) {}

  Result<> load(const Vocab& vocab) {
    IdByText by_spelling;
    bytes_.reserve(vocab.tokens.size());
    for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
      const std::string& token = vocab.tokens[i];
      const TokenId id{static_cast<std::int32_t>(i)};
      by_spelling.try_emplace(token, id);
      const TokenKind kind = vocab.kinds.empty() ? TokenKind::kNormal : vocab.kinds[i];
      const bool spelled = kind == TokenKind::kNormal || kind == TokenKind::kUnused;
      std::optional<std::string> bytes = spelled ? unspell(token) : std::nullopt;
      mergeable_.push_back(bytes.has_value());
      bytes_.push_back(bytes ? std::move(*bytes) : token);
    }
    index_bytes();
    return load_merges(vocab.merges, by_spelling);
  }

  std::string respell(std::string_view token) const override { return std::string(token); }

  void encode(std::string_view text, std::vector<TokenId>& ids) const override {
    const std::string normalized = pre_.nfc ? nfc(text) : std::string();
    Merger merger;
    for (const std::string_view piece : pre_.split(pre_.nfc ? normalized : text)) encode_piece(piece, merger, ids);
  }

  const std::vector<std::string>& bytes() const override { return bytes_; }
  bool replaces_each_byte() const override { return false; }
  bool strips_first_space() const override { return false; }
  std::string description() const override { return "byte-level BPE, pre-tokenizer " + std::string(pre_.name); }

 private:
  static std::uint64_t pair_key(TokenId left, TokenId right) {
    return std::uint64_t{static_cast<std::uint32_t>(left.value)} << 32 | static_cast<std::uint32_t>(right.value);
  }

  void index_bytes() {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (!mergeable_[i]) continue;
      const TokenId id{static_cast<std::int32_t>(i)};
      if (bytes_[i].size() == 1) {
        std::optional<TokenId>& single = of_byte_[static_cast<unsigned char>(bytes_[i][0])];
        if (!single) single = id;
      }
      if (pre_.ignore_merges) whole_pieces_.try_emplace(bytes_[i], id);
    }
  }

  Result<> load_merges(const std::vector<std::string>& merges, const IdByText& by_spelling) {
    merges_.reserve(merges.size());
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const std::string& merge = merges[rank];
      const auto refuse = [&](const std::string& why) {
        return Error{ErrorCode::kCorrupt, "merge " + std::to_string(rank) + " (\"" + merge + "\") " + why,
                     "tokenizer.ggml.merges"};
      };
      const std::size_t space = merge.find(' ', 1);
      if (space == std::string::npos || space + 1 == merge.size())
        return refuse("is not two texts and a space between");
      const std::string_view left(merge.data(), space), right = std::string_view(merge).substr(space + 1);
      const auto left_at = by_spelling.find(left), right_at = by_spelling.find(right);
      const auto joined_at = by_spelling.find(std::string(left) + std::string(right));
      for (const auto& at : {left_at, right_at, joined_at}) {
        if (at == by_spelling.end()) return refuse("has a part, or makes a text, that is not among the tokens");
      }
      merges_.try_emplace(pair_key(left_at->second, right_at->second),
                          Join{static_cast<std::uint32_t>(rank), joined_at->second});
    }
    return Ok{};
  }

  void encode_piece(std::string_view piece, Merger& merger, std::vector<TokenId>& ids) const {
    if (pre_.ignore_merges) {
      if (const auto whole = whole_pieces_.find(piece); whole != whole_pieces_.end()) {
        ids.push_back(whole->second);
        return;
      }
    }
    merger.clear();
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const std::optional<TokenId> id = of_byte_[static_cast<unsigned char>(piece[i])];
      if (id) merger.push_back(static_cast<std::uint32_t>(i), 1, id);
    }
    merger.merge([&](const Symbol& left, const Symbol& right) -> std::optional<Join> {
      const auto at = merges_.find(pair_key(*left.id, *right.id));
      if (at == merges_.end()) return std::nullopt;
      return at->second;
    });
    merger.for_each([&](const Symbol& symbol) { ids.push_back(*symbol.id); });
  }

  const PreTokenizer& pre_;
  std::vector<std::string> bytes_;
  std::vector<bool> mergeable_;                            // by id: an ordinary token, spelled in the alphabet of bytes
  std::array<std::optional<TokenId>, 256> of_byte_;        // a byte without a token is dropped, as the reference does
  IdByText whole_pieces_;                                  // of bytes, for ignore_merges; its keys are in bytes_
  boost::unordered_flat_map<std::uint64_t, Join> merges_;  // by pair of ids; the cost is the rank
};

}  // namespace

Result<std::unique_ptr<TokenModel>> make_byte_bpe(const Vocab& vocab) {
  const PreTokenizer* pre = find_pre_tokenizer(vocab.pre);
  if (pre == nullptr) {
    return Error{
        ErrorCode::kUnsupported,
        "the pre-tokenizer \"" + vocab.pre + "\" is not supported; supported are " + supported_pre_tokenizers(),
        "tokenizer.ggml.pre"};
  }
  auto model = std::make_unique<ByteBpe>(*pre);
  OCTAVO_CHECK_OK(model->load(vocab));
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace octavo
