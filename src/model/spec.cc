#include "model/spec.h"

#include <fmt/format.h>

#include <cmath>

#include "model/arch_table.h"

namespace octavo {
namespace {

// Far above any model, low enough that products of two fit 32 bits times a row of blocks.
constexpr std::uint32_t kMaxWidth = 1 << 20, kMaxHeads = 1 << 12, kMaxFfnWidth = 1 << 22;
constexpr std::uint32_t kMaxVocab = 1 << 24, kMaxContext = 1 << 28;
constexpr std::uint32_t kMaxHeadDim = 1024, kHeadDimStep = 16;

Error refused(std::string_view what, const std::string& reason) {
  return {ErrorCode::kInvalidArgument, fmt::format("{} {}", what, reason), std::string(what)};
}

Result<> check_range(std::string_view what, std::uint64_t value, std::uint64_t limit) {
  if (value >= 1 && value <= limit) return Ok{};
  return refused(what, fmt::format("is {}, it must be 1 to {}", value, limit));
}

Result<> check_layer(const LayerSpec& layer) {
  OCTAVO_CHECK_OK(check_range("number of attention heads", layer.num_heads, kMaxHeads));
  OCTAVO_CHECK_OK(check_range("number of KV heads", layer.num_kv_heads, layer.num_heads));
  OCTAVO_CHECK_OK(check_range("FFN width", layer.ffn_width, kMaxFfnWidth));
  if (layer.num_heads % layer.num_kv_heads != 0) {
    return refused("number of attention heads",
                   fmt::format("is {}, not a multiple of the {} KV heads", layer.num_heads, layer.num_kv_heads));
  }
  if (layer.head_dim == 0 || layer.head_dim > kMaxHeadDim || layer.head_dim % kHeadDimStep != 0) {
    return refused("head dimension", fmt::format("is {}, it must be a multiple of {} up to {}", layer.head_dim,
                                                 kHeadDimStep, kMaxHeadDim));
  }
  return Ok{};
}

Result<> check_rope(const RopeSpec& rope, std::uint32_t head_dim) {
  const auto positive = [](float x) { return std::isfinite(x) && x > 0; };
  if (rope.rot_dims == 0 || rope.rot_dims > head_dim || rope.rot_dims % 2 != 0) {
    return refused("rope dimension",
                   fmt::format("is {}, it must be even and at most the head's {}", rope.rot_dims, head_dim));
  }
  if (!positive(rope.base)) return refused("rope base", fmt::format("is {}, it must be positive", rope.base));
  if (!positive(rope.linear_factor)) {
    return refused("rope scaling factor", fmt::format("is {}, it must be positive", rope.linear_factor));
  }
  if (!rope.factors.empty() && rope.factors.size() != rope.rot_dims / 2) {
    return refused("number of rope factors",
                   fmt::format("is {}, it must be half the rope dimension {}", rope.factors.size(), rope.rot_dims));
  }
  for (const float factor : rope.factors) {
    if (!positive(factor)) return refused("rope factor", fmt::format("{} must be positive", factor));
  }
  const RopeSpec::Llama3& l3 = rope.llama3;
  if (l3.factor == 0) return Ok{};
  if (!positive(l3.factor) || !positive(l3.low_freq_factor) || !(l3.high_freq_factor > l3.low_freq_factor) ||
      !std::isfinite(l3.high_freq_factor) || l3.original_context == 0) {
    return refused(
        "llama3 rope scaling",
        fmt::format("has factor {}, low {}, high {}, original context {}: all must be positive, high above low",
                    l3.factor, l3.low_freq_factor, l3.high_freq_factor, l3.original_context));
  }
  return Ok{};
}

Result<> check_spec(const ModelSpec& spec) {
  OCTAVO_CHECK_OK(check_range("width", spec.width, kMaxWidth));
  OCTAVO_CHECK_OK(check_range("vocabulary size", spec.vocab_size, kMaxVocab));
  OCTAVO_CHECK_OK(check_range("context length", spec.context_length, kMaxContext));
  if (!(spec.norm_eps >= 0 && spec.norm_eps < 1)) {
    return refused("norm epsilon", fmt::format("is {}, it must be in [0, 1)", spec.norm_eps));
  }
  if (!std::isfinite(spec.attn_scale) || spec.attn_scale <= 0) {
    return refused("attention scale", fmt::format("is {}, it must be positive", spec.attn_scale));
  }
  for (const float cap : {spec.attn_soft_cap, spec.final_soft_cap}) {
    if (!std::isfinite(cap) || cap < 0) return refused("soft-cap", fmt::format("is {}, it must not be negative", cap));
  }
  for (const LayerSpec& layer : spec.layers) OCTAVO_CHECK_OK(check_layer(layer));
  for (const RopeSpec& rope : spec.ropes) OCTAVO_CHECK_OK(check_rope(rope, spec.layers[0].head_dim));
  return Ok{};
}

bool has_window(const ArchRow& arch, const ModelFacts& facts, std::uint32_t layer) {
  if (!facts.has_window.empty()) return facts.has_window[layer];
  switch (arch.window_rule) {
    case WindowRule::kEveryLayer: return true;
    case WindowRule::kUpperLayers: return false;
    case WindowRule::kPeriodic: break;
  }
  return (layer + 1) % facts.window_period.value_or(arch.window_period) != 0;
}

float attention_scale(const ArchRow& arch, const ModelFacts& facts, const LayerSpec& layer) {
  if (facts.attn_scale) return *facts.attn_scale;
  const bool by_width = layer.head_dim == arch.width_scaled_head_dim;
  const double size = by_width ? static_cast<double>(facts.width) / layer.num_heads : layer.head_dim;
  return static_cast<float>(1.0 / std::sqrt(size));
}

}  // namespace

bool operator==(const RopeSpec& a, const RopeSpec& b) {
  return a.base == b.base && a.rot_dims == b.rot_dims && a.linear_factor == b.linear_factor && a.factors == b.factors &&
         a.llama3.factor == b.llama3.factor && a.llama3.low_freq_factor == b.llama3.low_freq_factor &&
         a.llama3.high_freq_factor == b.llama3.high_freq_factor &&
         a.llama3.original_context == b.llama3.original_context;
}

Result<ModelSpec> make_spec(const ArchRow& arch, const ModelFacts& facts) {
  OCTAVO_CHECK_OK(check_range("number of layers", facts.num_layers, kMaxLayers));
  OCTAVO_CHECK_OK(check_range("number of attention heads", facts.num_heads.at(0), kMaxHeads));
  if (!facts.head_dim && facts.width % facts.num_heads[0] != 0) {
    return refused("width",
                   fmt::format("is {}, not a multiple of the {} attention heads", facts.width, facts.num_heads[0]));
  }
  if (facts.window_period == 0U) return refused("window pattern", "is 0, it must be at least 1");

  ModelSpec spec;
  spec.architecture = arch.gguf_name;
  spec.name = facts.name;
  spec.width = facts.width;
  spec.vocab_size = facts.vocab_size;
  spec.context_length = facts.context_length;
  spec.norms = arch.norms;
  spec.ffn = arch.ffn;
  spec.norm_eps = facts.norm_eps;
  spec.attn_soft_cap = facts.attn_soft_cap.value_or(arch.attn_soft_cap);
  spec.final_soft_cap = facts.final_soft_cap.value_or(arch.final_soft_cap);
  spec.embedding_scale = arch.scale_embedding ? std::sqrt(static_cast<float>(facts.width)) : 1.0F;
  spec.qkv_bias = arch.qkv_bias || facts.qkv_bias;
  spec.tied_embeddings = facts.tied_embeddings;

  const std::uint32_t head_dim = facts.head_dim.value_or(facts.width / facts.num_heads[0]);
  const std::uint32_t window = facts.window.value_or(arch.window);
  for (std::uint32_t i = 0; i < facts.num_layers; ++i) {
    spec.layers.push_back({.num_heads = facts.num_heads[i],
                           .num_kv_heads = facts.num_kv_heads[i],
                           .head_dim = head_dim,
                           .window = has_window(arch, facts, i) ? window : 0,
                           .rope = 0,
                           .ffn_width = facts.ffn_width[i]});
  }
  spec.attn_scale = attention_scale(arch, facts, spec.layers[0]);

  RopeSpec global = facts.rope;
  if (global.rot_dims == 0) global.rot_dims = head_dim;
  spec.ropes.push_back(global);
  const float local_base = facts.local_rope_base.value_or(arch.local_rope_base);
  RopeSpec local;
  local.base = local_base;
  local.rot_dims = global.rot_dims;
  if (local_base != 0 && !(local == global)) {
    spec.ropes.push_back(local);
    for (LayerSpec& layer : spec.layers) layer.rope = layer.window != 0 ? 1 : 0;
  }
  OCTAVO_CHECK_OK(check_spec(spec));
  return spec;
}

}  // namespace octavo
