// Renders an Ast. Every rendering has its own budget of steps, depth and output; a template that exceeds one fails.
#pragma once
#include <chrono>
#include <string>

#include "text/jinja_ast.h"

namespace octavo::jinja {

/// `context`: a dict with the template's variables. Throws Failure, whose message names the template's line.
[[nodiscard]] std::string render(const Ast& ast, const Value& context, std::chrono::local_seconds now);

}  // namespace octavo::jinja
