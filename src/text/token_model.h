// Where the kinds of tokenizers differ: how ordinary text becomes ids, and what an id adds to the text.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/ids.h"
#include "octavo/result.h"
#include "text/vocab.h"

namespace octavo {

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// The second spelling under which a user-defined token is found in text; the same as the first if there is none.
  [[nodiscard]] virtual std::string respell(std::string_view token) const = 0;
  /// Ids of a stretch of valid UTF-8 without matched tokens, not empty.
  virtual void encode(std::string_view text, std::vector<TokenId>& ids) const = 0;
  /// The bytes of every token, by id.
  [[nodiscard]] virtual const std::vector<std::string>& bytes() const = 0;

  /// One U+FFFD for each invalid byte, not for each maximal subpart.
  [[nodiscard]] virtual bool replaces_each_byte() const = 0;
  /// The first space of a decoded text is the one that encoding put there.
  [[nodiscard]] virtual bool strips_first_space() const = 0;
  [[nodiscard]] virtual std::string description() const = 0;
};

/// Both expect sizes and ids checked, and check the rest.
[[nodiscard]] Result<std::unique_ptr<TokenModel>> make_byte_bpe(const Vocab& vocab);
[[nodiscard]] Result<std::unique_ptr<TokenModel>> make_spm(const Vocab& vocab);

}  // namespace octavo
