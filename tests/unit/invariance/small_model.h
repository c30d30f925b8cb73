// A small generated model whose layers mix every packed format, windows and full attention: what a plain clone has to
// test invariance on.
#pragma once
#include <string>

namespace octavo::testing {

/// Writes the model to a temporary file, once a process, and returns its path. Always the same bytes.
[[nodiscard]] std::string small_model();

}  // namespace octavo::testing
