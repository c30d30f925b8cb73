// Ids to text, as they come. Decoding a whole sequence is a stream that ends at once.
#pragma once
#include <string>
#include <string_view>

#include "octavo/tokenizer.h"

namespace octavo {

struct DetokenizerRules {
  bool skip_special = false;
  bool replaces_each_byte = false;  // U+FFFD for each invalid byte; else for each maximal subpart
  bool strips_first_space = false;
};

class StreamDetokenizer final : public Detokenizer {
 public:
  /// `tokenizer` has to live longer.
  StreamDetokenizer(const Tokenizer& tokenizer, DetokenizerRules rules) : tokenizer_(tokenizer), rules_(rules) {}

  std::string push(TokenId id) override;
  std::string finish() override;

 private:
  [[nodiscard]] std::string take(bool at_end);

  const Tokenizer& tokenizer_;
  DetokenizerRules rules_;
  bool at_start_ = true;
  std::string pending_;  // bytes not given out yet
};

}  // namespace octavo
