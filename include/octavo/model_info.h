// What a model file is, in numbers: for `inspect`, the banner, /v1/models and the planner.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "octavo/ids.h"
#include "octavo/result.h"

namespace octavo {

/// Element type of the KV cache.
enum class KvType : std::uint32_t { kF32, kF16, kBF16 };
[[nodiscard]] const char* kv_type_name(KvType type);  // "f32", "f16", "bf16"
[[nodiscard]] Result<KvType> parse_kv_type(const std::string& name);

/// What linear layers compute in. kInt8: weights as the file has them, block formats with int8 activations. kBF16 and
/// kF32: all weights and activations as such; exact in F32, rounded in BF16.
enum class Numerics : std::uint8_t { kInt8, kBF16, kF32 };
[[nodiscard]] const char* numerics_name(Numerics numerics);  // "int8", "bf16", "f32"

struct LayerInfo {
  std::uint32_t num_heads = 0;
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t window = 0;  // 0: full attention
};

struct TypeCount {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};

struct TokenizerInfo {
  std::string description;  // kind and pre-tokenizer
  std::uint32_t vocab_size = 0;
  std::optional<TokenId> bos, eos;
  std::vector<TokenId> end_of_generation;
  bool add_bos = false;
};

struct ModelInfo {
  std::string path;
  std::string name;          // general.name, or the file's stem
  std::string architecture;  // as the file says: "llama"
  std::string format;        // "GGUF v3", "safetensors"
  std::uint64_t file_bytes = 0;
  std::uint64_t parameters = 0;
  std::uint64_t weights_bytes = 0;  // of the tensors in the file
  std::map<std::string, TypeCount> tensor_types;
  std::uint32_t num_layers = 0, width = 0, ffn_width = 0, vocab_size = 0, context_length = 0;
  std::vector<LayerInfo> layers;  // [num_layers]
  std::string attention_kind;     // "MHA", "GQA 9/3", "MQA 4/1"
  bool tied_embeddings = false;
  std::uint64_t kv_bytes_per_token = 0;  // payload at KV type `kv_type`, all layers
  KvType kv_type = KvType::kBF16;
  std::optional<TokenizerInfo> tokenizer;    // none in a folder without one
  std::optional<std::string> chat_template;  // its source
  std::vector<std::string> warnings;         // metadata keys that were ignored, and the like
};

/// Reads headers only; no weights are loaded. MODEL is a file or a folder.
[[nodiscard]] Result<ModelInfo> inspect_model(const std::string& path, KvType kv_type = KvType::kBF16);

}  // namespace octavo
