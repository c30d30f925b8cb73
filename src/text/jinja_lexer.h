// Splits a template into data and tokens, applying the white-space rules of trim_blocks and lstrip_blocks.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace octavo::jinja {

enum class TokenKind : std::uint8_t {
  kData,
  kPrintBegin,
  kPrintEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kNumber,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind;
  std::uint32_t line;
  std::string text;  // data, name, operator or the string's contents
  Value number;
};

/// A template that cannot be parsed: thrown inside the engine, like Failure.
struct SyntaxError {
  std::uint32_t line;
  std::string message;
};

/// The last token is kEnd. Throws SyntaxError. `source` is valid UTF-8.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source);

}  // namespace octavo::jinja
