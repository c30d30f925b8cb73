// Written by tools/make_unicode_tables.py from tokenizers 0.23.3; do not edit.
// FNV-1a (64 bits) of the library's own answers for every code point but the surrogates, in order.
#pragma once
#include <cstdint>

namespace octavo::unicode_golden {
inline constexpr std::uint64_t kClasses = 0xD381F504FD655804;  // one byte each
inline constexpr std::uint64_t kNfc = 0xE66615674D9C5B7B;      // of the test's probes
}  // namespace octavo::unicode_golden
