#include "text/unicode.h"

#include <algorithm>
#include <array>
#include <optional>

#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace octavo {

namespace {

// Hangul syllables are composed by arithmetic (The Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTrails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTrailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTrailCount;

constexpr char32_t kFirstThatNormalizes = 0x300;  // text below it is in form C already

CharClass search_class(char32_t code_point) {
  const auto runs = unicode::class_runs();
  const auto after = std::upper_bound(runs.begin(), runs.end(), code_point,
                                      [](char32_t c, const unicode::ClassRun& run) { return c < run.first; });
  return std::prev(after)->kind;
}

std::uint8_t combining_class(char32_t code_point) {
  if (code_point < kFirstThatNormalizes) return 0;
  const auto marks = unicode::combining_marks();
  const auto at = std::lower_bound(marks.begin(), marks.end(), code_point,
                                   [](const unicode::CombiningMark& mark, char32_t c) { return mark.mark < c; });
  return at != marks.end() && at->mark == code_point ? at->kind : 0;
}

void append_decomposed(std::u32string& out, char32_t c) {
  if (c >= kSyllables && c < kSyllables + kSyllableCount) {
    const char32_t index = c - kSyllables;
    out += kLeads + index / (kVowelCount * kTrailCount);
    out += kVowels + index / kTrailCount % kVowelCount;
    if (index % kTrailCount != 0) out += kTrails + index % kTrailCount;
    return;
  }
  const auto table = unicode::decompositions();
  const auto at = std::lower_bound(table.begin(), table.end(), c,
                                   [](const unicode::Decomposition& d, char32_t key) { return d.composed < key; });
  if (at != table.end() && at->composed == c) {
    out += at->parts;
  } else {
    out += c;
  }
}

std::optional<char32_t> compose(char32_t first, char32_t second) {
  if (first >= kLeads && first < kLeads + kLeadCount && second >= kVowels && second < kVowels + kVowelCount) {
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTrailCount;
  }
  const bool open_syllable =
      first >= kSyllables && first < kSyllables + kSyllableCount && (first - kSyllables) % kTrailCount == 0;
  if (open_syllable && second > kTrails && second < kTrails + kTrailCount) return first + (second - kTrails);

  const auto table = unicode::compositions();
  const auto at = std::lower_bound(table.begin(), table.end(), std::pair(first, second),
                                   [](const unicode::Composition& row, const std::pair<char32_t, char32_t>& key) {
                                     return std::pair(row.first, row.second) < key;
                                   });
  if (at == table.end() || at->first != first || at->second != second) return std::nullopt;
  return at->composed;
}

std::u32string decompose(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = read_utf8(text, at);
    append_decomposed(out, unit.code_point);
    at += unit.length;
  }
  return out;
}

// Each run of marks, in the order of their classes.
void sort_marks(std::u32string& text) {
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    if (combining_class(text[begin]) == 0) continue;
    std::size_t end = begin + 1;
    while (end < text.size() && combining_class(text[end]) != 0) ++end;
    const auto first = text.begin();
    std::stable_sort(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end),
                     [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

// Joins each starter with the characters after it that nothing of the same or a higher class keeps away.
std::u32string recompose(const std::u32string& text) {
  std::u32string out;
  out.reserve(text.size());
  std::optional<std::size_t> starter;  // its place in out
  for (const char32_t c : text) {
    const std::uint8_t kind = combining_class(c);
    if (starter) {
      const bool adjacent = *starter + 1 == out.size();
      const bool reachable = adjacent || (kind != 0 && combining_class(out.back()) < kind);
      if (reachable) {
        if (const auto joined = compose(out[*starter], c)) {
          out[*starter] = *joined;
          continue;
        }
      }
    }
    if (kind == 0) starter = out.size();
    out += c;
  }
  return out;
}

}  // namespace

CharClass char_class(char32_t code_point) {
  static const auto ascii = [] {
    std::array<CharClass, 128> table{};
    for (char32_t c = 0; c < table.size(); ++c) table[c] = search_class(c);
    return table;
  }();
  return code_point < ascii.size() ? ascii[code_point] : search_class(code_point);
}

std::string nfc(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0xCC; });  // U+0300 is CC 80
  if (plain) return std::string(text);

  std::u32string characters = decompose(text);
  sort_marks(characters);
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : recompose(characters)) append_utf8(out, c);
  return out;
}

}  // namespace octavo
