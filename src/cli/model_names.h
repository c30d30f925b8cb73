// What MODEL means on the command line: a packaged name, a GGUF file or a model folder.
#pragma once
#include <string>

#include "octavo/result.h"

namespace octavo {

/// The path to open. A packaged name ("smollm2", "gemma3-270m") is looked up in $OCTAVO_MODELS, else in
/// ${XDG_CACHE_HOME:-~/.cache}/octavo/models; kNotFound tells how to fetch it.
[[nodiscard]] Result<std::string> resolve_model(const std::string& model);

/// The name clients know the model by: the packaged name, the folder's name or the file's stem.
[[nodiscard]] std::string model_name(const std::string& path);

}  // namespace octavo
