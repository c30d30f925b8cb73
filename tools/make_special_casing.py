#!/usr/bin/env python3
"""Print src/text/special_casing.h: the characters whose upper or title case is more than one character.

usage: make_special_casing.py > src/text/special_casing.h
"""

import unicodedata


def rows(change):
    for code in range(0x110000):
        changed = change(chr(code))
        if len(changed) > 1:
            text = "".join(f"\\x{byte:02x}" for byte in changed.encode())
            yield f'    {{0x{code:04x}, "{text}"}},  // {unicodedata.name(chr(code)).lower()}'


print("// Characters whose upper or title case is more than one character, in code point order.")
print(f"// Made by tools/make_special_casing.py (Unicode {unicodedata.unidata_version}); do not edit.")
print("#pragma once\n\nnamespace octavo::jinja {\n")
print("struct SpecialCase {\n  char32_t code_point;\n  const char* utf8;\n};\n")
print("inline constexpr SpecialCase kSpecialUpper[] = {")
print("\n".join(rows(str.upper)))
print("};\n\ninline constexpr SpecialCase kSpecialTitle[] = {")
print("\n".join(rows(str.title)))
print("};\n\n}  // namespace octavo::jinja")
