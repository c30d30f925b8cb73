// A tokenizer's data as a model file carries it, container-neutral. The engine fills it from GGUF metadata.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/ids.h"
#include "octavo/result.h"
#include "octavo/tokenizer.h"

namespace octavo {

enum class VocabKind : std::uint8_t { kByteBpe, kSpm };  // tokenizer.ggml.model "gpt2" and "llama"
enum class TokenKind : std::uint8_t {
  kNormal = 1,
  kUnknown,
  kControl,
  kUserDefined,
  kUnused,
  kByte
};  // GGUF's numbers

struct Vocab {
  VocabKind kind = VocabKind::kByteBpe;
  std::string pre = "default";      // tokenizer.ggml.pre; unknown names are refused
  std::vector<std::string> tokens;  // by id, as the file spells them
  std::vector<float> scores;        // kSpm
  std::vector<TokenKind> kinds;     // [tokens] or empty: all normal
  std::vector<std::string> merges;  // kByteBpe: "left right", best first
  std::optional<TokenId> bos, eos, eot, eom, unknown;
  bool add_bos = false, add_eos = false;
  bool add_space_prefix = false;
};

/// What add_bos is where a file does not say: true for SPM and for the pre-tokenizers of Llama 3.
[[nodiscard]] bool adds_bos_by_default(VocabKind kind, std::string_view pre);

/// Checks everything (ids in range, sizes agree, known kind and pre-tokenizer) and builds the tokenizer.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> make_tokenizer(Vocab vocab);

}  // namespace octavo
