// Source text to Ast, by the grammar of Jinja 3.1 with loop controls and the `generation` block.
#pragma once
#include <memory>
#include <string_view>

#include "text/jinja_ast.h"

namespace octavo::jinja {

/// Throws SyntaxError. `source` is valid UTF-8. Unknown filters and tests are errors, unless a condition may skip them.
[[nodiscard]] std::unique_ptr<const Ast> parse(std::string_view source);

}  // namespace octavo::jinja
