#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "text/detokenizer.h"
#include "text/pretokenizer.h"
#include "text/token_matcher.h"
#include "text/token_model.h"
#include "text/utf8.h"
#include "text/vocab.h"

namespace octavo {

namespace {

// Control or user-defined tokens with these texts end a generation, whatever ids the file names.
constexpr std::array<std::string_view, 10> kEndTexts = {
    "<|eot_id|>",      "<|im_end|>", "<|end|>",    "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>", "<|eom_id|>", "<|return|>", "<|call|>",      "<｜end▁of▁sentence｜>",
};

Error corrupt(std::string field, std::string message) {
  return {ErrorCode::kCorrupt, std::move(message), std::move(field)};
}

Result<> check(const Vocab& vocab) {
  const std::size_t count = vocab.tokens.size();
  const auto sized = [&](const char* field, std::size_t size) -> Result<> {
    if (size == count) return Ok{};
    return corrupt(field, std::string(field) + " has " + std::to_string(size) + " entries for " +
                              std::to_string(count) + " tokens");
  };
  if (count == 0) return corrupt("tokenizer.ggml.tokens", "the vocabulary has no tokens");
  if (count > std::numeric_limits<std::int32_t>::max()) {
    return corrupt("tokenizer.ggml.tokens", "the vocabulary has " + std::to_string(count) + " tokens, more than ids");
  }
  if (!vocab.kinds.empty()) OCTAVO_CHECK_OK(sized("tokenizer.ggml.token_type", vocab.kinds.size()));
  if (vocab.kind == VocabKind::kSpm) OCTAVO_CHECK_OK(sized("tokenizer.ggml.scores", vocab.scores.size()));

  const std::pair<const char*, std::optional<TokenId>> named[] = {{"tokenizer.ggml.bos_token_id", vocab.bos},
                                                                  {"tokenizer.ggml.eos_token_id", vocab.eos},
                                                                  {"tokenizer.ggml.eot_token_id", vocab.eot},
                                                                  {"tokenizer.ggml.eom_token_id", vocab.eom},
                                                                  {"tokenizer.ggml.unknown_token_id", vocab.unknown}};
  for (const auto& [field, id] : named) {
    if (id && (id->value < 0 || static_cast<std::size_t>(id->value) >= count)) {
      return corrupt(field, std::string(field) + " is " + std::to_string(id->value) + ", outside the vocabulary of " +
                                std::to_string(count) + " tokens");
    }
  }
  if (vocab.add_bos && !vocab.bos) {
    return corrupt("tokenizer.ggml.add_bos_token",
                   "a BOS token is to be added, but tokenizer.ggml.bos_token_id is absent");
  }
  if (vocab.add_eos && !vocab.eos) {
    return corrupt("tokenizer.ggml.add_eos_token",
                   "an EOS token is to be added, but tokenizer.ggml.eos_token_id is absent");
  }
  return Ok{};
}

std::vector<TokenId> end_of_generation_set(const Vocab& vocab) {
  std::vector<TokenId> ends;
  const auto add = [&](TokenId id) {
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  };
  for (const std::optional<TokenId>& id : {vocab.eos, vocab.eot, vocab.eom}) {
    if (id) add(*id);
  }
  for (std::size_t i = 0; i < vocab.kinds.size(); ++i) {
    const bool matched = vocab.kinds[i] == TokenKind::kControl || vocab.kinds[i] == TokenKind::kUserDefined;
    if (matched && std::find(kEndTexts.begin(), kEndTexts.end(), vocab.tokens[i]) != kEndTexts.end()) {
      add(TokenId{static_cast<std::int32_t>(i)});
    }
  }
  return ends;
}

class VocabTokenizer final : public Tokenizer {
 public:
  VocabTokenizer(const Vocab& vocab, std::unique_ptr<TokenModel> model)
      : model_(std::move(model)),
        bos_(vocab.bos),
        eos_(vocab.eos),
        add_bos_(vocab.add_bos),
        add_eos_(vocab.add_eos),
        ends_(end_of_generation_set(vocab)),
        special_(vocab.tokens.size(), false) {
    // SentencePiece text may hold a piece as it is spelled; normalization composes at most three characters into one.
    const bool bytes = vocab.kind == VocabKind::kByteBpe;
    const PreTokenizer* pre = bytes ? find_pre_tokenizer(vocab.pre) : nullptr;
    for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
      const std::size_t size = bytes ? model_->bytes()[i].size() : vocab.tokens[i].size();
      most_bytes_ = std::max(most_bytes_, static_cast<std::uint32_t>(size) * (pre != nullptr && pre->nfc ? 3 : 1));
    }
    for (std::size_t i = 0; i < vocab.kinds.size(); ++i) {
      special_[i] = vocab.kinds[i] == TokenKind::kControl || vocab.kinds[i] == TokenKind::kUnknown;
      if (special_[i] || vocab.kinds[i] == TokenKind::kUserDefined) {
        const TokenId id{static_cast<std::int32_t>(i)};
        matcher_.add(vocab.tokens[i], id);
        if (!special_[i]) matcher_.add(model_->respell(vocab.tokens[i]), id);
      }
    }
  }

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override {
    std::vector<TokenId> ids;
    if (options.add_special && add_bos_) ids.push_back(*bos_);
    encode_valid(replace_invalid_utf8(text), options.parse_special, ids);
    if (options.add_special && add_eos_) ids.push_back(*eos_);
    return ids;
  }

  Result<std::string> decode(std::span<const TokenId> ids, bool skip_special) const override {
    StreamDetokenizer stream(*this, rules(skip_special));
    std::string text;
    for (const TokenId id : ids) {
      if (!contains(id)) {
        return Error{ErrorCode::kInvalidArgument,
                     "token id " + std::to_string(id.value) + " is outside the vocabulary; ids go from 0 to " +
                         std::to_string(vocab_size() - 1),
                     "ids"};
      }
      text += stream.push(id);
    }
    text += stream.finish();
    return text;
  }

  std::unique_ptr<Detokenizer> detokenizer(bool skip_special) const override {
    return std::make_unique<StreamDetokenizer>(*this, rules(skip_special));
  }

  std::uint32_t vocab_size() const override { return static_cast<std::uint32_t>(special_.size()); }
  std::string token_bytes(TokenId id) const override { return contains(id) ? model_->bytes()[index(id)] : ""; }
  bool is_special(TokenId id) const override { return contains(id) && special_[index(id)]; }
  std::optional<TokenId> bos() const override { return bos_; }
  std::optional<TokenId> eos() const override { return eos_; }
  std::span<const TokenId> end_of_generation() const override { return ends_; }
  std::uint32_t most_bytes_per_token() const override { return most_bytes_; }
  std::string description() const override { return model_->description(); }

 private:
  static std::size_t index(TokenId id) { return static_cast<std::size_t>(id.value); }
  bool contains(TokenId id) const { return id.value >= 0 && index(id) < special_.size(); }

  DetokenizerRules rules(bool skip_special) const {
    return {skip_special, model_->replaces_each_byte(), model_->strips_first_space()};
  }

  // The matched tokens cut the text; the model encodes what lies between.
  void encode_valid(std::string_view text, bool parse_special, std::vector<TokenId>& ids) const {
    std::size_t plain = 0;  // where the text not encoded yet begins
    const auto encode_plain = [&](std::size_t end) {
      if (end > plain) model_->encode(text.substr(plain, end - plain), ids);
    };
    for (std::size_t at = 0; at < text.size();) {
      const std::optional<TokenMatcher::Match> match = matcher_.longest_at(text, at);
      if (!match) {
        ++at;
        continue;
      }
      // A control token that is to stay text still hides the tokens inside it.
      if (parse_special || !is_special(match->id)) {
        encode_plain(at);
        ids.push_back(match->id);
        plain = at + match->length;
      }
      at += match->length;
    }
    encode_plain(text.size());
  }

  std::unique_ptr<TokenModel> model_;
  TokenMatcher matcher_;
  std::optional<TokenId> bos_, eos_;
  bool add_bos_, add_eos_;
  std::vector<TokenId> ends_;
  std::uint32_t most_bytes_ = 1;
  std::vector<bool> special_;  // by id
};

}  // namespace

bool adds_bos_by_default(VocabKind kind, std::string_view pre) {
  if (kind == VocabKind::kSpm) return true;
  const PreTokenizer* rules = find_pre_tokenizer(pre);
  return rules != nullptr && rules->adds_bos;
}

Result<std::unique_ptr<Tokenizer>> make_tokenizer(Vocab vocab) {
  OCTAVO_CHECK_OK(check(vocab));
  OCTAVO_TRY(std::unique_ptr<TokenModel> model, vocab.kind == VocabKind::kSpm ? make_spm(vocab) : make_byte_bpe(vocab));
  return std::unique_ptr<Tokenizer>(std::make_unique<VocabTokenizer>(vocab, std::move(model)));
}

}  // namespace octavo
