#include "model/arch_table.h"

#include <algorithm>
#include <array>

namespace octavo {
namespace {

constexpr auto kSharedTensors = std::to_array<TensorName>({
    {Role::kTokenEmbedding, "token_embd.weight", "model.embed_tokens.weight"},
    {Role::kOutputNorm, "output_norm.weight", "model.norm.weight"},
    {Role::kOutput, "output.weight", "lm_head.weight"},
    {Role::kAttnNorm, "blk.{}.attn_norm.weight", "model.layers.{}.input_layernorm.weight"},
    {Role::kQ, "blk.{}.attn_q.weight", "model.layers.{}.self_attn.q_proj.weight"},
    {Role::kK, "blk.{}.attn_k.weight", "model.layers.{}.self_attn.k_proj.weight"},
    {Role::kV, "blk.{}.attn_v.weight", "model.layers.{}.self_attn.v_proj.weight"},
    {Role::kQBias, "blk.{}.attn_q.bias", "model.layers.{}.self_attn.q_proj.bias"},
    {Role::kKBias, "blk.{}.attn_k.bias", "model.layers.{}.self_attn.k_proj.bias"},
    {Role::kVBias, "blk.{}.attn_v.bias", "model.layers.{}.self_attn.v_proj.bias"},
    {Role::kQNorm, "blk.{}.attn_q_norm.weight", "model.layers.{}.self_attn.q_norm.weight"},
    {Role::kKNorm, "blk.{}.attn_k_norm.weight", "model.layers.{}.self_attn.k_norm.weight"},
    {Role::kAttnOutput, "blk.{}.attn_output.weight", "model.layers.{}.self_attn.o_proj.weight"},
    {Role::kGate, "blk.{}.ffn_gate.weight", "model.layers.{}.mlp.gate_proj.weight"},
    {Role::kUp, "blk.{}.ffn_up.weight", "model.layers.{}.mlp.up_proj.weight"},
    {Role::kDown, "blk.{}.ffn_down.weight", "model.layers.{}.mlp.down_proj.weight"},
});

// HF names a layer's second norm by its place, so the same name means two things.
constexpr auto kPreNorms = std::to_array<TensorName>({
    {Role::kFfnNorm, "blk.{}.ffn_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
});
constexpr auto kSandwichNorms = std::to_array<TensorName>({
    {Role::kPostAttnNorm, "blk.{}.post_attention_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
    {Role::kFfnNorm, "blk.{}.ffn_norm.weight", "model.layers.{}.pre_feedforward_layernorm.weight"},
    {Role::kPostFfnNorm, "blk.{}.post_ffw_norm.weight", "model.layers.{}.post_feedforward_layernorm.weight"},
});

constexpr auto kLlamaTypes = std::to_array<const char*>({"llama", "mistral"});
constexpr auto kQwen2Types = std::to_array<const char*>({"qwen2"});
constexpr auto kQwen3Types = std::to_array<const char*>({"qwen3"});
constexpr auto kGemma2Types = std::to_array<const char*>({"gemma2"});
constexpr auto kGemma3Types = std::to_array<const char*>({"gemma3_text"});

constexpr std::array kRows = {
    ArchRow{.gguf_name = "llama",  // also Mistral and SmolLM2
            .hf_types = kLlamaTypes,
            .ffn_norms = kPreNorms,
            .gguf_interleaved_qk = true},
    ArchRow{.gguf_name = "qwen2",
            .hf_types = kQwen2Types,
            .ffn_norms = kPreNorms,
            .qkv_bias = true,
            .window_rule = WindowRule::kUpperLayers},
    ArchRow{.gguf_name = "qwen3",
            .hf_types = kQwen3Types,
            .ffn_norms = kPreNorms,
            .norms = {.qk = true},
            .window_rule = WindowRule::kUpperLayers,
            .hf_head_dim = 128},
    ArchRow{.gguf_name = "gemma2",
            .hf_types = kGemma2Types,
            .ffn_norms = kSandwichNorms,
            .ffn = FfnKind::kGeGlu,
            .norms = {.post_attn = true, .post_ffn = true},
            .scale_embedding = true,
            .attn_soft_cap = 50,
            .final_soft_cap = 30,
            .window_rule = WindowRule::kPeriodic,
            .window_period = 2,
            .window = 4096,
            .width_scaled_head_dim = 128,
            .hf_gain_minus_one = true,
            .hf_tied = true,
            .hf_head_dim = 256},
    ArchRow{.gguf_name = "gemma3",
            .hf_types = kGemma3Types,
            .ffn_norms = kSandwichNorms,
            .ffn = FfnKind::kGeGlu,
            .norms = {.qk = true, .post_attn = true, .post_ffn = true},
            .scale_embedding = true,
            .window_rule = WindowRule::kPeriodic,
            .window_period = 6,
            .window = 4096,
            .local_rope_base = 10000,
            .width_scaled_head_dim = 128,
            .hf_gain_minus_one = true,
            .hf_tied = true,
            .hf_head_dim = 256,
            .hf_rope_base = 1000000},
};

void append(std::string& list, const char* name) {
  if (!list.empty()) list += ", ";
  list += name;
}

}  // namespace

const ArchRow* find_gguf_arch(std::string_view name) {
  const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const ArchRow& r) { return r.gguf_name == name; });
  return row == kRows.end() ? nullptr : &*row;
}

const ArchRow* find_hf_arch(std::string_view model_type) {
  const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const ArchRow& r) {
    return std::find(r.hf_types.begin(), r.hf_types.end(), model_type) != r.hf_types.end();
  });
  return row == kRows.end() ? nullptr : &*row;
}

const TensorName* find_tensor_name(const ArchRow& arch, Role role) {
  for (const std::span<const TensorName> names : {std::span<const TensorName>(kSharedTensors), arch.ffn_norms}) {
    for (const TensorName& name : names) {
      if (name.role == role) return &name;
    }
  }
  return nullptr;
}

std::string supported_gguf_archs() {
  std::string list;
  for (const ArchRow& row : kRows) append(list, row.gguf_name);
  return list;
}

std::string supported_hf_types() {
  std::string list;
  for (const ArchRow& row : kRows) {
    for (const char* type : row.hf_types) append(list, type);
  }
  return list;
}

}  // namespace octavo
