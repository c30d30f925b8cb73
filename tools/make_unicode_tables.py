#!/usr/bin/env python3
"""Write src/text/unicode_tables.cc and tests/unit/text/unicode_golden.h.

usage: make_unicode_tables.py [REPOSITORY]

Our pre-tokenizers must split text where Hugging Face `tokenizers` does, so the tables are what that library itself
answers, code point by code point, and no Unicode data file:

  classes         its regular expressions for \\p{L}, \\p{N} and \\s, and its Digits pre-tokenizer, which knows a newer
                  Unicode and so a few more numbers
  decompositions  its NFD of every code point
  combining       the class unicodedata gives a mark, where its NFD really moves the mark (it knows an older Unicode)
  compositions    the pairs its NFC joins

The golden header has hashes of the library's own answers, not of the tables, for a test that sweeps our functions.
"""

import pathlib
import sys
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

PINNED = "0.23.3"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xAC00 + 11172)
OTHER, LETTER, NUMBER, SPACE, NEW_NUMBER = range(5)
CLASS_NAMES = ["kOther", "kLetter", "kNumber", "kSpace", "kNewNumber"]

nfd = normalizers.NFD().normalize_str
nfc = normalizers.NFC().normalize_str


def matching(pattern):
    """The code points a regular expression matches."""
    left = set()
    for piece, _ in pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str("".join(map(chr, CODE_POINTS))):
        left.update(map(ord, piece))
    return set(CODE_POINTS) - left


def split_as_digits():
    """The code points that Digits(individual_digits=True) sets apart."""
    found = set()
    digits = pre_tokenizers.Digits(individual_digits=True)
    candidates = [c for c in CODE_POINTS if chr(c) != "a"]
    for first in range(0, len(candidates), 4096):
        text = "a" + "a".join(map(chr, candidates[first : first + 4096])) + "a"
        found.update(ord(p) for p, _ in digits.pre_tokenize_str(text) if len(p) == 1 and p != "a")
    return found


def character_classes():
    classes = {c: OTHER for c in CODE_POINTS}
    for c in split_as_digits():
        classes[c] = NEW_NUMBER
    for pattern, kind in ((r"\p{L}", LETTER), (r"\p{N}", NUMBER), (r"\s", SPACE)):
        for c in matching(pattern):
            assert classes[c] in (OTHER, NEW_NUMBER)
            classes[c] = kind
    return classes


def combining_classes():
    """Marks by (code point, class). A mark counts if NFD sorts it against one of two marks of known class."""
    marks = {}
    for c in CODE_POINTS:
        kind = unicodedata.combining(chr(c))
        if kind == 0:
            continue
        low, high = "\u0334" + chr(c), chr(c) + "\u0345"  # classes 1 and 240: already sorted
        moved = any(nfd(s[::-1]) == nfd(s) for s in (low, high))
        if moved:
            marks[c] = kind
    return marks


def decompositions():
    return {c: nfd(chr(c)) for c in CODE_POINTS if c not in HANGUL and nfd(chr(c)) != chr(c)}


def compositions():
    pairs = {}
    for c in CODE_POINTS:
        parts = unicodedata.decomposition(chr(c)).split()
        if c in HANGUL or len(parts) != 2 or parts[0].startswith("<"):
            continue
        first, second = (int(p, 16) for p in parts)
        if nfc(chr(first) + chr(second)) == chr(c):
            pairs[first, second] = c
    return pairs


def fnv(chunks):
    value = 0xCBF29CE484222325
    for chunk in chunks:
        for byte in chunk:
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def nfc_probes():
    """Every code point alone, and between marks of many classes, in both orders."""
    for c in CODE_POINTS:
        yield chr(c)
        yield "e" + "\u0315" + chr(c) + "\u0334"
        yield "\u1100" + chr(c) + "\u0301\u0323"


def rows(items, per_line):
    items = list(items)
    return "\n".join("    " + " ".join(items[i : i + per_line]) for i in range(0, len(items), per_line))


def escaped(text):
    return "".join(f"\\U{ord(c):08X}" for c in text)


def main():
    if tokenizers.__version__ != PINNED:
        raise SystemExit(f"needs tokenizers {PINNED}, this is {tokenizers.__version__}")
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)

    classes = character_classes()
    runs = []
    for c in CODE_POINTS:
        if not runs or runs[-1][1] != classes[c]:
            runs.append((c, classes[c]))
    class_rows = [f"{{0x{c:X}, CharClass::{CLASS_NAMES[k]}}}," for c, k in runs]
    mark_rows = [f"{{0x{c:X}, {k}}}," for c, k in sorted(combining_classes().items())]
    decomposition_rows = [f'{{0x{c:X}, U"{escaped(t)}"}},' for c, t in sorted(decompositions().items())]
    composition_rows = [f"{{0x{a:X}, 0x{b:X}, 0x{c:X}}}," for (a, b), c in sorted(compositions().items())]

    (root / "src/text/unicode_tables.cc").write_text(
        f"""// Written by tools/make_unicode_tables.py from tokenizers {PINNED}; do not edit.
// clang-format off
#include "text/unicode_tables.h"

namespace octavo::unicode {{

namespace {{

constexpr ClassRun kClassRuns[] = {{
{rows(class_rows, 4)}
}};

constexpr CombiningMark kCombiningMarks[] = {{
{rows(mark_rows, 8)}
}};

constexpr Decomposition kDecompositions[] = {{
{rows(decomposition_rows, 3)}
}};

constexpr Composition kCompositions[] = {{
{rows(composition_rows, 4)}
}};

}}  // namespace

std::span<const ClassRun> class_runs() {{ return kClassRuns; }}
std::span<const CombiningMark> combining_marks() {{ return kCombiningMarks; }}
std::span<const Decomposition> decompositions() {{ return kDecompositions; }}
std::span<const Composition> compositions() {{ return kCompositions; }}

}}  // namespace octavo::unicode
"""
    )
    (root / "tests/unit/text/unicode_golden.h").write_text(
        f"""// Written by tools/make_unicode_tables.py from tokenizers {PINNED}; do not edit.
// FNV-1a (64 bits) of the library's own answers for every code point but the surrogates, in order.
#pragma once
#include <cstdint>

namespace octavo::unicode_golden {{
inline constexpr std::uint64_t kClasses = 0x{fnv([bytes(classes[c] for c in CODE_POINTS)]):016X};  // one byte each
inline constexpr std::uint64_t kNfc = 0x{fnv(nfc(p).encode() for p in nfc_probes()):016X};  // of the test's probes
}}  // namespace octavo::unicode_golden
"""
    )


if __name__ == "__main__":
    main()
