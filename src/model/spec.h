// A model as numbers: everything the forward pass, the KV layout and the planner need, and no tensor.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace octavo
