// A model as numbers: everything the forward pass, the KV layout and the planner need, and no tensor.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octavo/result.h"

namespace octavo {

enum class FfnKind : std::uint8_t { kSwiGlu, kGeGlu };  // silu or tanh-GELU gate

/// Where the norms of a layer stand.
struct NormPlan {
  bool qk = false;         // RMS norm per head on q and k, before rope
  bool post_attn = false;  // a norm on the attention output before the residual (Gemma)
  bool post_ffn = false;   // likewise for the FFN
};

struct RopeSpec {
  float base = 10000.0F;
  std::uint32_t rot_dims = 0;
  // inv_freq[i] = base^(-2i/rot_dims) / linear_factor, then / factors[i] where given (Llama 3 as GGUF stores it), or
  // the llama3 rule below (as HF stores it).
  float linear_factor = 1.0F;
  std::vector<float> factors;  // [rot_dims / 2] or empty
  struct Llama3 {
    float factor = 0, low_freq_factor = 1, high_freq_factor = 4;
    std::uint32_t original_context = 8192;
  } llama3;  // factor 0: off
  friend bool operator==(const RopeSpec&, const RopeSpec&);
};

struct LayerSpec {
  std::uint32_t num_heads = 0, num_kv_heads = 0, head_dim = 0;
  std::uint32_t window = 0;  // 0: full attention; else keys in (p - window, p]
  std::uint32_t rope = 0;    // index into ModelSpec::ropes
  std::uint32_t ffn_width = 0;
};

struct ModelSpec {
  std::string architecture;  // row of the arch table
  std::string name;
  std::uint32_t width = 0, vocab_size = 0, context_length = 0;
  std::vector<LayerSpec> layers;
  std::vector<RopeSpec> ropes;
  NormPlan norms;
  FfnKind ffn = FfnKind::kSwiGlu;
  float norm_eps = 1e-5F;
  float attn_scale = 0;                         // multiplies q.k
  float attn_soft_cap = 0, final_soft_cap = 0;  // 0: none
  float embedding_scale = 1;                    // multiplies the token embedding
  bool qkv_bias = false;
  bool tied_embeddings = false;  // no output matrix: the embedding serves as head
};

inline constexpr std::uint32_t kMaxLayers = 4096;

struct ArchRow;

/// What a container says of a model in its own keys; an empty optional leaves the value to the architecture's row.
struct ModelFacts {
  std::string name;
  std::uint32_t width = 0, vocab_size = 0, context_length = 0, num_layers = 0;
  std::vector<std::uint32_t> num_heads, num_kv_heads, ffn_width;  // [num_layers]
  std::optional<std::uint32_t> head_dim;
  float norm_eps = 1e-5F;
  RopeSpec rope;                               // rot_dims 0: the whole head
  std::optional<float> local_rope_base;        // of the layers with a window
  std::optional<std::uint32_t> window;         // 0: no windows, whatever the row says
  std::optional<std::uint32_t> window_period;  // every so-manieth layer is global; 1: none has a window
  std::vector<bool> has_window;                // [num_layers], or empty: by period
  std::optional<float> attn_scale, attn_soft_cap, final_soft_cap;
  bool qkv_bias = false;
  bool tied_embeddings = false;
};

/// Facts and the row's defaults make a spec. Fails with kInvalidArgument or kUnsupported naming the quantity, its value
/// and its limit, so that no later arithmetic on sizes can overflow.
[[nodiscard]] Result<ModelSpec> make_spec(const ArchRow& arch, const ModelFacts& facts);

}  // namespace octavo
