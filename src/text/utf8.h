// UTF-8: one character at a time, lenient on foreign bytes.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace octavo {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

/// What starts at one place of a text: a character, or the longest start of one that the bytes do not finish
/// (a "maximal subpart", Unicode 15 section 3.9; at least one byte).
struct Utf8Unit {
  char32_t code_point = kReplacementCharacter;
  std::size_t length = 0;  // bytes
  bool valid = false;
  bool unfinished = false;  // not valid, but more bytes after the end of the text could have made it so
};

/// `at` is inside `text`.
[[nodiscard]] Utf8Unit read_utf8(std::string_view text, std::size_t at);

void append_utf8(std::string& text, char32_t code_point);

/// Each maximal subpart that is no character becomes U+FFFD, as Python's errors="replace" and the WHATWG decoder do.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view text);

}  // namespace octavo
