// Python's operators on any values.
#pragma once
#include <string_view>

#include "text/jinja_ast.h"
#include "text/jinja_runtime.h"

namespace octavo::jinja {

[[nodiscard]] Value binary(Runtime& runtime, Arithmetic operation, const Value& a, const Value& b);
[[nodiscard]] Value unary(Unary::Op operation, const Value& value);
[[nodiscard]] bool compare(Runtime& runtime, Comparison operation, const Value& a, const Value& b);
[[nodiscard]] bool contains(Runtime& runtime, const Value& container, const Value& item);
/// object[start:stop:step]; None for an absent part.
[[nodiscard]] Value slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                          const Value& step);
/// A text with & < > ' " replaced by HTML's entities; markup stays as it is.
[[nodiscard]] std::string escape(const Value& value);

}  // namespace octavo::jinja
