// Text to token ids and back, exactly as the model's own tokenizer does it.
//
// Threads: a Tokenizer is immutable after loading and may be shared; a Detokenizer belongs to one stream.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/ids.h"
#include "octavo/result.h"

namespace octavo {

struct EncodeOptions {
  bool add_special = true;    // BOS / EOS as the model's metadata says
  bool parse_special = true;  // text of control tokens becomes the token; false: it stays text (user content)
};

/// Turns a stream of ids into text. Never emits half a UTF-8 character, never changes text already given out.
class Detokenizer {
 public:
  virtual ~Detokenizer() = default;
  /// Text that `id` made certain; bytes of an unfinished character stay inside.
  [[nodiscard]] virtual std::string push(TokenId id) = 0;
  /// The end of the stream: what is left, an unfinished character as U+FFFD.
  [[nodiscard]] virtual std::string finish() = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Invalid UTF-8 is replaced by U+FFFD first (one per maximal subpart, as Python's errors="replace").
  [[nodiscard]] virtual std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const = 0;
  /// Ids outside the vocabulary are an error; invalid byte sequences become U+FFFD.
  [[nodiscard]] virtual Result<std::string> decode(std::span<const TokenId> ids, bool skip_special) const = 0;
  [[nodiscard]] virtual std::unique_ptr<Detokenizer> detokenizer(bool skip_special) const = 0;

  [[nodiscard]] virtual std::uint32_t vocab_size() const = 0;
  /// The token's own bytes (not necessarily UTF-8); empty for an id out of range. For logprobs and `with_pieces`.
  [[nodiscard]] virtual std::string token_bytes(TokenId id) const = 0;
  [[nodiscard]] virtual bool is_special(TokenId id) const = 0;  // control or unknown
  [[nodiscard]] virtual std::optional<TokenId> bos() const = 0;
  [[nodiscard]] virtual std::optional<TokenId> eos() const = 0;
  /// The set that ends a generation: eos, eot, eom and the well-known texts that are in this vocabulary.
  [[nodiscard]] virtual std::span<const TokenId> end_of_generation() const = 0;
  /// A text of n bytes never has fewer than n / most_bytes_per_token() tokens: what is hopelessly too long can be
  /// refused before it is encoded.
  [[nodiscard]] virtual std::uint32_t most_bytes_per_token() const = 0;
  /// "bpe, pre-tokenizer smollm" and the like, for people.
  [[nodiscard]] virtual std::string description() const = 0;
};

/// From a GGUF file (vocabulary-only ones too) or a Hugging Face folder with tokenizer.json.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::string& path);

}  // namespace octavo
