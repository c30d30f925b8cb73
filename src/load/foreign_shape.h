// Sizes of models that this engine cannot run: enough of them to state what their KV takes. Nothing is guessed: what
// a file does not say is 0, and what would be another kind of state than keys and values is refused.
#pragma once
#include <string>
#include <string_view>

#include "octavo/model_shape.h"
#include "octavo/result.h"

namespace octavo {

/// A config.json, in the keys of the usual families; of a model of several parts, its text_config. Without weights.
[[nodiscard]] Result<ModelShape> shape_of_foreign_config(const std::string& path, std::string_view text);

/// A GGUF file, with its weights.
[[nodiscard]] Result<ModelShape> shape_of_foreign_gguf(const std::string& path);

/// The tensors of all *.safetensors of a folder; 0: there are none.
struct StoredWeights {
  std::uint64_t bytes = 0, parameters = 0;
};
[[nodiscard]] Result<StoredWeights> stored_weights(const std::string& folder);

}  // namespace octavo
