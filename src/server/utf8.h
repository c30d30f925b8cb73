// Two small questions about UTF-8 bytes.
#pragma once
#include <cstddef>
#include <string_view>

namespace octavo {

/// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
[[nodiscard]] bool valid_utf8(std::string_view bytes);
/// Code points of valid text.
[[nodiscard]] std::size_t count_characters(std::string_view text);

}  // namespace octavo
