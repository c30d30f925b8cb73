// Python's view of text: code points, not bytes; its case rules, its white space, its classes.
// Text is valid UTF-8, except that a template may write lone surrogates ("\ud800"), kept in their three-byte form.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::jinja {

/// The character at byte `at`, which moves past it.
[[nodiscard]] char32_t next_code_point(std::string_view text, std::size_t& at);
void append_code_point(std::string& text, char32_t c);  // surrogates too
[[nodiscard]] std::size_t code_points(std::string_view text);
/// The byte where code point number `index` starts; text.size() from the end on.
[[nodiscard]] std::size_t byte_offset(std::string_view text, std::size_t index);
[[nodiscard]] std::vector<std::string_view> split_characters(std::string_view text);
[[nodiscard]] bool has_surrogates(std::string_view text);

// str.isspace(), isalpha() and so on, for one character.
[[nodiscard]] bool is_space(char32_t c);
[[nodiscard]] bool is_line_break(char32_t c);  // of splitlines()
[[nodiscard]] bool is_alpha(char32_t c);
[[nodiscard]] bool is_decimal(char32_t c);
[[nodiscard]] bool is_digit(char32_t c);
[[nodiscard]] bool is_numeric(char32_t c);
[[nodiscard]] bool is_lower(char32_t c);
[[nodiscard]] bool is_upper(char32_t c);
[[nodiscard]] bool is_title(char32_t c);
[[nodiscard]] bool is_printable(char32_t c);
[[nodiscard]] bool is_identifier_start(char32_t c);
[[nodiscard]] bool is_identifier_part(char32_t c);

[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] std::string to_upper(std::string_view text);
[[nodiscard]] std::string to_casefold(std::string_view text);
[[nodiscard]] std::string to_swapcase(std::string_view text);
[[nodiscard]] std::string to_title(std::string_view text);        // str.title()
[[nodiscard]] std::string to_capitalized(std::string_view text);  // str.capitalize()

/// str.strip(chars) and its one-sided forms; no `chars`: white space.
[[nodiscard]] std::string_view strip(std::string_view text, std::optional<std::string_view> chars, bool left,
                                     bool right);
/// str.splitlines(keepends).
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

}  // namespace octavo::jinja
