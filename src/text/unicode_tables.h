// Character data, by code point in ascending order. Written by tools/make_unicode_tables.py.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "text/unicode.h"

namespace octavo::unicode {

struct ClassRun {
  char32_t first;  // up to the next run's first
  CharClass kind;
};

struct CombiningMark {
  char32_t mark;
  std::uint8_t kind;  // canonical combining class, never 0
};

struct Decomposition {
  char32_t composed;
  std::u32string_view parts;  // canonical, fully decomposed; Hangul syllables are not listed
};

struct Composition {
  char32_t first, second, composed;  // ascending by (first, second); Hangul syllables are not listed
};

[[nodiscard]] std::span<const ClassRun> class_runs();
[[nodiscard]] std::span<const CombiningMark> combining_marks();
[[nodiscard]] std::span<const Decomposition> decompositions();
[[nodiscard]] std::span<const Composition> compositions();

}  // namespace octavo::unicode
