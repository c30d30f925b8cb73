#include "text/jinja_unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "text/special_casing.h"
#include "text/utf8.h"

namespace octavo::jinja {
namespace {

struct Range {
  char32_t first, last;
};

// Numeric type "digit" without being decimal: superscripts, circled digits and the like.
constexpr Range kOtherDigits[] = {
    {0xb2, 0xb3},     {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},   {0x2070, 0x2070},
    {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247c},   {0x2488, 0x2490},
    {0x24ea, 0x24ea}, {0x24f5, 0x24fd},   {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},
    {0x278a, 0x2792}, {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a},
};
// Property Other_Lowercase and Other_Uppercase: cased characters outside categories Ll and Lu.
constexpr Range kOtherLower[] = {
    {0xaa, 0xaa},     {0xba, 0xba},     {0x2b0, 0x2b8},     {0x2c0, 0x2c1},     {0x2e0, 0x2e4},     {0x345, 0x345},
    {0x37a, 0x37a},   {0x1d2c, 0x1d6a}, {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
    {0x2090, 0x209c}, {0x2170, 0x217f}, {0x24d0, 0x24e9},   {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},
    {0xa7f8, 0xa7f9}, {0xab5c, 0xab5f}, {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
};
constexpr Range kOtherUpper[] = {
    {0x2160, 0x216f}, {0x24b6, 0x24cf}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189},
};

bool among(const auto& ranges, char32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges), [c](Range r) { return c >= r.first && c <= r.last; });
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); }

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x2019;
  }
}

void append_special(const auto& table, char32_t c, utf8proc_int32_t simple, std::string& out) {
  const auto found =
      std::lower_bound(std::begin(table), std::end(table), c,
                       [](const SpecialCase& entry, char32_t value) { return entry.code_point < value; });
  if (found != std::end(table) && found->code_point == c) {
    out += found->utf8;
  } else {
    append_code_point(out, static_cast<char32_t>(simple));
  }
}

void append_upper(char32_t c, std::string& out) {
  append_special(kSpecialUpper, c, utf8proc_toupper(static_cast<utf8proc_int32_t>(c)), out);
}

void append_title(char32_t c, std::string& out) {
  append_special(kSpecialTitle, c, utf8proc_totitle(static_cast<utf8proc_int32_t>(c)), out);
}

/// A capital sigma at the end of a word: a cased letter before it and none after, ignoring marks.
bool is_final_sigma(std::string_view text, std::size_t begin, std::size_t end) {
  bool cased_before = false;
  for (std::size_t at = 0; at < begin;) {
    const char32_t c = next_code_point(text, at);
    if (!is_case_ignorable(c)) cased_before = is_cased(c);
  }
  if (!cased_before) return false;
  while (end < text.size()) {
    const char32_t c = next_code_point(text, end);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

constexpr std::size_t kSigmaContext = 256;  // bytes looked at around a sigma, so that a text of sigmas stays linear

void append_lower(std::string_view text, std::size_t begin, std::size_t end, char32_t c, std::string& out) {
  if (c == 0x130) {  // capital I with dot above: i and the dot
    out += "i\xcc\x87";
  } else if (c == 0x3a3) {
    std::size_t from = begin > kSigmaContext ? begin - kSigmaContext : 0;
    while (from < begin && (static_cast<unsigned char>(text[from]) & 0xc0) == 0x80) ++from;
    const std::string_view around = text.substr(from, end - from + kSigmaContext);
    append_code_point(out, is_final_sigma(around, begin - from, end - from) ? 0x3c2 : 0x3c3);
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

/// Calls change(begin, end, code point) for every character.
void for_each_character(std::string_view text, auto&& change) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    change(begin, at, c);
  }
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(at) < 0x80) return byte(at++);
  const Utf8Unit unit = read_utf8(text, at);
  if (unit.valid) {
    at += unit.length;
    return unit.code_point;
  }
  if (at + 2 < text.size() && byte(at) == 0xed) {  // a surrogate
    const char32_t c = 0xd000U | (byte(at + 1) & 0x3fU) << 6 | (byte(at + 2) & 0x3fU);
    at += 3;
    return c;
  }
  at += std::max<std::size_t>(unit.length, 1);
  return kReplacementCharacter;
}

void append_code_point(std::string& text, char32_t c) {
  if (c >= 0xd800 && c <= 0xdfff) {
    text += '\xed';
    text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    append_utf8(text, c);
  }
}

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::size_t byte_offset(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    if (index-- == 0) break;
  }
  return at;
}

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> out;
  for_each_character(
      text, [&](std::size_t begin, std::size_t end, char32_t) { out.push_back(text.substr(begin, end - begin)); });
  return out;
}

bool has_surrogates(std::string_view text) {
  for (std::size_t at = text.find('\xed'); at != text.npos; at = text.find('\xed', at + 1)) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xa0) return true;
  }
  return false;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_alpha(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) { return is_decimal(c) || among(kOtherDigits, c); }

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
}

bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || among(kOtherLower, c); }
bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU || among(kOtherUpper, c); }
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }

bool is_printable(char32_t c) {
  if (c < 0x7f) return c >= 0x20;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

bool is_identifier_start(char32_t c) {
  if (c < 0x80) return std::isalpha(static_cast<int>(c)) || c == '_';
  return is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(char32_t c) {
  if (c < 0x80) return std::isalnum(static_cast<int>(c)) || c == '_';
  const auto kind = category(c);
  return is_identifier_start(c) || kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
         kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_PC;
}

std::string to_lower(std::string_view text) {
  std::string out;
  for_each_character(text,
                     [&](std::size_t begin, std::size_t end, char32_t c) { append_lower(text, begin, end, c, out); });
  return out;
}

std::string to_upper(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::size_t, std::size_t, char32_t c) { append_upper(c, out); });
  return out;
}

std::string to_casefold(std::string_view text) {
  utf8proc_uint8_t* folded = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &folded, UTF8PROC_CASEFOLD);
  std::string out = length < 0 ? std::string(text)
                               : std::string(reinterpret_cast<const char*>(folded), static_cast<std::size_t>(length));
  std::free(folded);
  return out;
}

std::string to_swapcase(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::size_t begin, std::size_t end, char32_t c) {
    if (is_upper(c)) {
      append_lower(text, begin, end, c, out);
    } else if (is_lower(c)) {
      append_upper(c, out);
    } else {
      append_code_point(out, c);
    }
  });
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  bool inside = false;
  for_each_character(text, [&](std::size_t begin, std::size_t end, char32_t c) {
    inside ? append_lower(text, begin, end, c, out) : append_title(c, out);
    inside = is_cased(c);
  });
  return out;
}

std::string to_capitalized(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::size_t begin, std::size_t end, char32_t c) {
    begin == 0 ? append_title(c, out) : append_lower(text, begin, end, c, out);
  });
  return out;
}

std::string_view strip(std::string_view text, std::optional<std::string_view> chars, bool left, bool right) {
  const auto strips = [&](std::string_view character) {
    if (chars) return chars->find(character) != chars->npos;
    std::size_t at = 0;
    return is_space(next_code_point(character, at));
  };
  while (left && !text.empty()) {
    std::size_t end = 0;
    (void)next_code_point(text, end);
    if (!strips(text.substr(0, end))) break;
    text.remove_prefix(end);
  }
  while (right && !text.empty()) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
    if (!strips(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (!is_line_break(c)) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(start, (keep_ends ? at : begin) - start));
    start = at;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

}  // namespace octavo::jinja
