#include "model/activation_bytes.h"

#include <algorithm>

#include "kernels/pack.h"
#include "model/linear.h"
#include "model/step_buffers.h"
#include "tensor/tensor_type.h"

namespace octavo {
namespace {

std::uint32_t act_kinds_of(const ModelShape& shape) {
  std::uint32_t kinds = 0;
  for (const MatrixShape& matrix : shape.matrices) {
    if (matrix.role == kEmbeddingRole) continue;  // looked up, never multiplied with
    const auto type = tensor_type_from_name(matrix.format);
    if (type) kinds |= 1U << static_cast<std::uint32_t>(act_kind_of(packed_format_of(*type)));
  }
  return kinds;
}

ModelSpec spec_of(const ModelShape& shape) {
  ModelSpec spec;
  spec.width = shape.width, spec.vocab_size = shape.vocab_size, spec.context_length = shape.context_length;
  for (const LayerShape& layer : shape.layers) {
    spec.layers.push_back({.num_heads = layer.num_heads,
                           .num_kv_heads = layer.num_kv_heads,
                           .head_dim = layer.head_dim,
                           .window = layer.window,
                           .rope = 0,
                           .ffn_width = shape.ffn_width});
  }
  for (const std::uint32_t dims : shape.rope_dims) spec.ropes.emplace_back().rot_dims = dims;
  return spec;
}

}  // namespace

std::uint64_t activation_bytes(const ModelSpec& spec, std::uint32_t act_kinds, const ForwardLimits& limits,
                               std::uint32_t threads) {
  std::uint64_t bytes = StepBuffers::bytes(spec, limits, threads);
  bytes += Linear::storage_bytes(max_rows(limits), max_width(spec), act_kinds);
  for (const RopeSpec& rope : spec.ropes) bytes += rope_bytes(rope, limits);
  return bytes;
}

std::uint64_t activation_bytes(const ModelShape& shape, const ForwardLimits& limits, std::uint32_t threads) {
  return activation_bytes(spec_of(shape), act_kinds_of(shape), limits, threads);
}

std::uint32_t max_width(const ModelSpec& spec) {
  std::uint32_t width = spec.width;
  for (const LayerSpec& layer : spec.layers) {
    width = std::max({width, layer.ffn_width, layer.num_heads * layer.head_dim});
  }
  return width;
}

std::uint32_t max_rows(const ForwardLimits& limits) { return std::max(limits.max_tokens, limits.max_logit_rows); }

std::uint64_t rope_bytes(const RopeSpec& rope, const ForwardLimits& limits) {
  return std::uint64_t{limits.max_positions} * rope.rot_dims * sizeof(float);
}

}  // namespace octavo
