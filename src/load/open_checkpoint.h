// A model file or folder as a Checkpoint.
#pragma once
#include <memory>
#include <string>

#include "model/checkpoint.h"
#include "octavo/model_info.h"
#include "octavo/result.h"

namespace octavo {

/// A GGUF file (the first of its parts, if split) or a Hugging Face folder: config.json with model.safetensors or its
/// shards. Nothing is copied before it is asked for.
[[nodiscard]] Result<std::unique_ptr<Checkpoint>> open_checkpoint(const std::string& path);

/// What Checkpoint::info() says, from the headers alone; vocabulary-only files have one, too.
[[nodiscard]] Result<ModelInfo> read_model_info(const std::string& path, KvType kv_type);

}  // namespace octavo
