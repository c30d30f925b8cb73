// Pre-tokenizers: the rules that cut text into the pieces inside which byte-level BPE merges.
//
// Each rule set does by hand what the model's own regular expression does, over the character classes of unicode.h.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

struct PreTokenizer {
  using Split = std::vector<std::string_view> (*)(std::string_view text);

  std::string_view name;       // as in tokenizer.ggml.pre
  Split split;                 // valid UTF-8 in; pieces of it in order, none left out
  bool nfc = false;            // text is brought to normalization form C first
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
  bool adds_bos = false;       // where the file does not say
};

/// nullptr: not one we know.
[[nodiscard]] const PreTokenizer* find_pre_tokenizer(std::string_view name);

/// "default, gpt-2, ..." for messages.
[[nodiscard]] std::string supported_pre_tokenizers();

}  // namespace octavo
