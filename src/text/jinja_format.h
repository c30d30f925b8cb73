// Python's two ways of formatting: text % values, and text.format(values).
#pragma once
#include <string>
#include <string_view>

#include "text/jinja_runtime.h"

namespace octavo::jinja {

/// `values`: a tuple, a dict for %(name)s, or one value.
[[nodiscard]] std::string format_percent(Runtime& runtime, std::string_view format, const Value& values);
[[nodiscard]] std::string format_braces(Runtime& runtime, std::string_view format, const Args& args);

}  // namespace octavo::jinja
