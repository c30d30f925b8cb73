#include "text/pretokenizer.h"

#include <algorithm>

#include "text/unicode.h"
#include "text/utf8.h"

namespace octavo {

namespace {

constexpr char32_t kLongS = 0x17F;  // folds to "s", so a contraction that ignores case takes it

// A text as characters, with a way back to its bytes.
class Characters {
 public:
  explicit Characters(std::string_view text) : text_(text) {
    characters_.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Unit unit = read_utf8(text, at);
      characters_.push_back({unit.code_point, static_cast<std::uint32_t>(at), char_class(unit.code_point)});
      at += unit.length;
    }
  }

  [[nodiscard]] std::size_t size() const { return characters_.size(); }
  [[nodiscard]] std::string_view bytes(std::size_t begin, std::size_t end) const {
    return text_.substr(offset(begin), offset(end) - offset(begin));
  }

  // These answer for any index; past the end there is no character of any class.
  [[nodiscard]] char32_t at(std::size_t i) const { return i < size() ? characters_[i].code_point : 0; }
  [[nodiscard]] bool is_letter(std::size_t i) const { return is(i, CharClass::kLetter); }
  [[nodiscard]] bool is_number(std::size_t i) const { return is(i, CharClass::kNumber); }
  [[nodiscard]] bool is_space(std::size_t i) const { return is(i, CharClass::kSpace); }
  [[nodiscard]] bool is_digit(std::size_t i) const { return is_number(i) || is(i, CharClass::kNewNumber); }
  [[nodiscard]] bool is_other(std::size_t i) const { return is(i, CharClass::kOther) || is(i, CharClass::kNewNumber); }
  [[nodiscard]] bool is_line_end(std::size_t i) const { return at(i) == '\n' || at(i) == '\r'; }

 private:
  struct Character {
    char32_t code_point;
    std::uint32_t offset;
    CharClass kind;
  };
  [[nodiscard]] bool is(std::size_t i, CharClass kind) const { return i < size() && characters_[i].kind == kind; }
  [[nodiscard]] std::size_t offset(std::size_t i) const { return i < size() ? characters_[i].offset : text_.size(); }

  std::string_view text_;
  std::vector<Character> characters_;
};

using Predicate = bool (Characters::*)(std::size_t) const;

std::size_t skip(const Characters& text, std::size_t i, Predicate belongs, std::size_t at_most = SIZE_MAX) {
  const std::size_t begin = i;
  while (i - begin < at_most && (text.*belongs)(i)) ++i;
  return i;
}

// 's 't 're 've 'm 'll 'd at `i`; the end of it, or `i`.
std::size_t skip_contraction(const Characters& text, std::size_t i, bool any_case) {
  if (text.at(i) != '\'') return i;
  const auto letter = [&](std::size_t at) -> char32_t {
    const char32_t c = text.at(at);
    if (!any_case) return c;
    if (c == kLongS) return 's';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
  };
  const char32_t first = letter(i + 1), second = letter(i + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return i + 2;
  const bool two =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return two ? i + 3 : i;
}

// \s+(?!\S)|\s+ : white space up to the last one before a word, which goes with the word if it can.
std::size_t skip_spaces(const Characters& text, std::size_t i) {
  const std::size_t end = skip(text, i, &Characters::is_space);
  return end < text.size() && end - i > 1 ? end - 1 : end;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t next_gpt2(const Characters& text, std::size_t i) {
  if (const std::size_t end = skip_contraction(text, i, false); end != i) return end;
  const std::size_t body = text.at(i) == ' ' ? i + 1 : i;
  for (const Predicate belongs : {&Characters::is_letter, &Characters::is_number, &Characters::is_other}) {
    if (const std::size_t end = skip(text, body, belongs); end != body) return end;
  }
  return skip_spaces(text, i);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,MAX}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+
// |\s+(?!\S)|\s+
template <std::size_t kMaxDigits>
std::size_t next_llama3(const Characters& text, std::size_t i) {
  if (const std::size_t end = skip_contraction(text, i, true); end != i) return end;

  const bool may_lead_a_word = !text.is_line_end(i) && !text.is_letter(i) && !text.is_number(i);
  const std::size_t word = may_lead_a_word ? i + 1 : i;
  if (text.is_letter(word)) return skip(text, word, &Characters::is_letter);

  if (text.is_number(i)) return skip(text, i, &Characters::is_number, kMaxDigits);

  const std::size_t body = text.at(i) == ' ' ? i + 1 : i;
  if (text.is_other(body)) {
    return skip(text, skip(text, body, &Characters::is_other), &Characters::is_line_end);
  }

  std::size_t after_lines = skip(text, i, &Characters::is_space);
  while (after_lines > i && !text.is_line_end(after_lines - 1)) --after_lines;
  return after_lines > i ? after_lines : skip_spaces(text, i);
}

template <std::size_t (*kNext)(const Characters&, std::size_t)>
void split_into(std::string_view text, std::vector<std::string_view>& pieces) {
  const Characters characters(text);
  for (std::size_t i = 0; i < characters.size();) {
    const std::size_t end = kNext(characters, i);
    pieces.push_back(characters.bytes(i, end));
    i = end;
  }
}

template <std::size_t (*kNext)(const Characters&, std::size_t)>
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> pieces;
  split_into<kNext>(text, pieces);
  return pieces;
}

// Each digit alone; what lies between as gpt-2 splits it, as if it were a whole text.
std::vector<std::string_view> split_digits_then_gpt2(std::string_view text) {
  std::vector<std::string_view> pieces;
  const Characters characters(text);
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= characters.size(); ++i) {
    if (i < characters.size() && !characters.is_digit(i)) continue;
    split_into<next_gpt2>(characters.bytes(begin, i), pieces);
    if (i < characters.size()) pieces.push_back(characters.bytes(i, i + 1));
    begin = i + 1;
  }
  return pieces;
}

constexpr PreTokenizer kPreTokenizers[] = {
    {.name = "default", .split = split<next_gpt2>},
    {.name = "gpt-2", .split = split<next_gpt2>},
    {.name = "phi-2", .split = split<next_gpt2>},
    {.name = "smollm", .split = split_digits_then_gpt2},
    {.name = "starcoder", .split = split_digits_then_gpt2},
    {.name = "llama-bpe", .split = split<next_llama3<3>>, .ignore_merges = true, .adds_bos = true},
    {.name = "llama3", .split = split<next_llama3<3>>, .ignore_merges = true, .adds_bos = true},
    {.name = "llama-v3", .split = split<next_llama3<3>>, .ignore_merges = true, .adds_bos = true},
    {.name = "qwen2", .split = split<next_llama3<1>>, .nfc = true},
    {.name = "deepseek-r1-qwen", .split = split<next_llama3<1>>, .nfc = true},
};

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  const auto* at = std::find_if(std::begin(kPreTokenizers), std::end(kPreTokenizers),
                                [&](const PreTokenizer& one) { return one.name == name; });
  return at == std::end(kPreTokenizers) ? nullptr : at;
}

std::string supported_pre_tokenizers() {
  std::string names;
  for (const PreTokenizer& one : kPreTokenizers) {
    if (!names.empty()) names += ", ";
    names += one.name;
  }
  return names;
}

}  // namespace octavo
