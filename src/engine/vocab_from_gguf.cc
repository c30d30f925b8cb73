#include "engine/vocab_from_gguf.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace octavo {

namespace {

// SentencePiece's own ids, which files of the kind may leave out.
constexpr TokenId kSpmUnknown{0}, kSpmBos{1}, kSpmEos{2};

Result<VocabKind> vocab_kind(const GgufFile& file) {
  OCTAVO_TRY(const auto model, file.get<std::string_view>("tokenizer.ggml.model"));
  if (!model) {
    return Error{ErrorCode::kNotFound, file.path() + " has no tokenizer: the key tokenizer.ggml.model is absent",
                 "tokenizer.ggml.model"};
  }
  if (*model == "gpt2") return VocabKind::kByteBpe;
  if (*model == "llama") return VocabKind::kSpm;
  return Error{ErrorCode::kUnsupported,
               file.path() + ": the tokenizer model \"" + std::string(*model) +
                   "\" is not supported; supported are gpt2 (byte-level BPE) and llama (SentencePiece BPE)",
               "tokenizer.ggml.model"};
}

Result<std::vector<std::string>> strings(const GgufFile& file, std::string_view key) {
  OCTAVO_TRY(const auto views, file.get_or<std::vector<std::string_view>>(key, {}));
  return std::vector<std::string>(views.begin(), views.end());
}

Result<std::optional<TokenId>> token_id(const GgufFile& file, std::string_view key) {
  OCTAVO_TRY(const auto id, file.get<std::int32_t>(key));
  return id ? std::optional(TokenId{*id}) : std::nullopt;
}

Result<std::vector<TokenKind>> token_kinds(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  OCTAVO_TRY(const auto numbers, file.get_or<std::vector<std::int32_t>>(kKey, {}));
  std::vector<TokenKind> kinds;
  kinds.reserve(numbers.size());
  for (const std::int32_t number : numbers) {
    if (number < static_cast<std::int32_t>(TokenKind::kNormal) ||
        number > static_cast<std::int32_t>(TokenKind::kByte)) {
      return Error{ErrorCode::kCorrupt,
                   file.path() + ": token_type of token " + std::to_string(kinds.size()) + " is " +
                       std::to_string(number) + ", known are 1 to 6",
                   std::string(kKey)};
    }
    kinds.push_back(static_cast<TokenKind>(number));
  }
  return kinds;
}

}  // namespace

Result<Vocab> vocab_from_gguf(const GgufFile& file) {
  Vocab vocab;
  OCTAVO_TRY(vocab.kind, vocab_kind(file));
  OCTAVO_TRY(const auto pre, file.get_or<std::string_view>("tokenizer.ggml.pre", "default"));
  vocab.pre = std::string(pre);
  OCTAVO_TRY(vocab.tokens, strings(file, "tokenizer.ggml.tokens"));
  OCTAVO_TRY(vocab.merges, strings(file, "tokenizer.ggml.merges"));
  OCTAVO_TRY(vocab.scores, file.get_or<std::vector<float>>("tokenizer.ggml.scores", {}));
  OCTAVO_TRY(vocab.kinds, token_kinds(file));
  OCTAVO_TRY(vocab.bos, token_id(file, "tokenizer.ggml.bos_token_id"));
  OCTAVO_TRY(vocab.eos, token_id(file, "tokenizer.ggml.eos_token_id"));
  OCTAVO_TRY(vocab.eot, token_id(file, "tokenizer.ggml.eot_token_id"));
  OCTAVO_TRY(vocab.eom, token_id(file, "tokenizer.ggml.eom_token_id"));
  OCTAVO_TRY(vocab.unknown, token_id(file, "tokenizer.ggml.unknown_token_id"));

  const bool spm = vocab.kind == VocabKind::kSpm;
  if (spm && vocab.tokens.size() > 2) {
    vocab.unknown = vocab.unknown.value_or(kSpmUnknown);
    vocab.bos = vocab.bos.value_or(kSpmBos);
    vocab.eos = vocab.eos.value_or(kSpmEos);
  }
  const bool default_bos = vocab.bos && adds_bos_by_default(vocab.kind, vocab.pre);
  OCTAVO_TRY(vocab.add_bos, file.get_or<bool>("tokenizer.ggml.add_bos_token", default_bos));
  OCTAVO_TRY(vocab.add_eos, file.get_or<bool>("tokenizer.ggml.add_eos_token", false));
  OCTAVO_TRY(vocab.add_space_prefix, file.get_or<bool>("tokenizer.ggml.add_space_prefix", spm));
  return vocab;
}

}  // namespace octavo
