#include "text/detokenizer.h"

#include <utility>

#include "text/utf8.h"

namespace octavo {

std::string StreamDetokenizer::push(TokenId id) {
  if (rules_.skip_special && tokenizer_.is_special(id)) return {};
  const std::string bytes = tokenizer_.token_bytes(id);
  if (bytes.empty()) return {};
  const bool strip = std::exchange(at_start_, false) && rules_.strips_first_space && bytes.front() == ' ';
  pending_.append(bytes, strip ? 1 : 0);
  return take(false);
}

std::string StreamDetokenizer::finish() { return take(true); }

std::string StreamDetokenizer::take(bool at_end) {
  std::string text;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const Utf8Unit unit = read_utf8(pending_, at);
    if (unit.unfinished && !at_end) break;
    if (unit.valid) {
      text.append(pending_, at, unit.length);
    } else {
      const std::size_t replacements = rules_.replaces_each_byte ? unit.length : 1;
      for (std::size_t i = 0; i < replacements; ++i) text += kReplacementUtf8;
    }
    at += unit.length;
  }
  pending_.erase(0, at);
  return text;
}

}  // namespace octavo
