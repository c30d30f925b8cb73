// What the pre-tokenizers know about characters, equal to Hugging Face tokenizers 0.23.3.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

/// The classes of that library's regular expressions; no character is in two of them.
enum class CharClass : std::uint8_t {
  kOther,
  kLetter,    // \p{L}
  kNumber,    // \p{N}
  kSpace,     // \s
  kNewNumber  // not \p{N} there, yet its digit splitter, made from a newer Unicode, sets it apart
};

[[nodiscard]] CharClass char_class(char32_t code_point);

/// Normalization form C (Unicode Standard Annex 15). Invalid bytes have to be replaced before.
[[nodiscard]] std::string nfc(std::string_view text);

}  // namespace octavo
