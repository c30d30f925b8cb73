// JSON in (the context) and out (the tojson filter).
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja_value.h"

namespace octavo::jinja {

/// Key order is kept; of equal keys the last value counts; integers of any size stay exact. Throws Failure.
[[nodiscard]] Value parse_json(std::string_view text);

/// The options of Python's json.dumps.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level's indentation; none: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
[[nodiscard]] std::string to_json(const Value& value, const JsonStyle& style);

}  // namespace octavo::jinja
