// A model as its sizes: all that planning needs, and no weights. From a model file, a config.json alone, or the
// built-in table of public models.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "octavo/model_info.h"
#include "octavo/result.h"

namespace octavo {

/// One layer. A latent layer (multi-head latent attention) keeps one vector per token instead of K and V of each head.
struct LayerShape {
  std::uint32_t num_heads = 0;     // query heads: they cost no KV
  std::uint32_t num_kv_heads = 0;  // what a token keeps: K and V of so many heads
  std::uint32_t head_dim = 0;
  std::uint32_t window = 0;      // 0: full attention
  std::uint32_t latent_dim = 0;  // > 0: elements per token, rope part included; KV heads then cost nothing
  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};

inline constexpr const char* kEmbeddingRole = "embedding";
inline constexpr const char* kHeadRole = "head";

/// Equal matrices of a model, [outputs, inputs] each, as a step multiplies with them.
struct MatrixShape {
  std::string role;    // "q", "k", "v", "attention output", "gate", "up", "down", kHeadRole, kEmbeddingRole
  std::string format;  // that it is packed in: "Q4_0", "BF16"
  std::uint64_t outputs = 0, inputs = 0;
  std::uint32_t count = 1;
  std::uint64_t packed_bytes = 0;  // of all of them, as the engine keeps them; 0: shared with another (tied head)
  bool per_token = true;           // false: only for rows with logits (head), or looked up (embedding)
};

struct ModelShape {
  std::string name;                                                            // "llama-2-7b"
  std::string source;                                                          // path, or "built-in"
  std::string architecture;                                                    // "llama"
  std::uint32_t width = 0, ffn_width = 0, vocab_size = 0, context_length = 0;  // 0: the config does not say
  std::vector<std::uint32_t> rope_dims;  // rotated dimensions of a head, of each rope table
  std::vector<LayerShape> layers;
  std::vector<MatrixShape> matrices;       // none of a model that is not supported
  std::uint64_t weights_bytes = 0;         // of the tensors in the file, or as `weights_format` makes them; 0: unknown
  std::uint64_t packed_weights_bytes = 0;  // resident once loaded; of a model that is not supported: as weights_bytes
  std::uint64_t parameters = 0;            // 0: unknown
  std::string weights_format;              // of a config or built-in shape: assumed, "BF16"; empty: the file says it
  std::string unsupported;  // why this engine cannot run it; its memory can be stated all the same. Empty: it can
};

/// `model`: a GGUF file, a Hugging Face folder, a config.json, or a built-in name. `weights_format` is what weights are
/// taken for where there are none ("Q4_0"; empty: what the config says, else BF16); refused for files that have them.
/// `numerics`: what they are packed for. Errors name the file and the field; kNotFound lists the built-in names.
[[nodiscard]] Result<ModelShape> read_model_shape(const std::string& model, const std::string& weights_format = "",
                                                  Numerics numerics = Numerics::kInt8);

/// "llama-2-7b", ...: in the order of the table.
[[nodiscard]] std::vector<std::string> builtin_models();

}  // namespace octavo
