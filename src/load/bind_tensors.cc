#include "load/bind_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/check.h"

namespace octavo {
namespace {

void add_layer_needs(const ModelSpec& spec, std::uint32_t i, std::vector<TensorNeed>& needs) {
  const LayerSpec& layer = spec.layers[i];
  const std::uint32_t q_rows = layer.num_heads * layer.head_dim, kv_rows = layer.num_kv_heads * layer.head_dim;
  const auto matrix = [&](Role role, std::uint32_t rows, std::uint32_t cols) {
    needs.push_back({{role, i}, rows, cols});
  };
  const auto vector = [&](Role role, std::uint32_t size) { needs.push_back({{role, i}, 1, size}); };
  vector(Role::kAttnNorm, spec.width);
  matrix(Role::kQ, q_rows, spec.width);
  matrix(Role::kK, kv_rows, spec.width);
  matrix(Role::kV, kv_rows, spec.width);
  if (spec.qkv_bias) {
    vector(Role::kQBias, q_rows);
    vector(Role::kKBias, kv_rows);
    vector(Role::kVBias, kv_rows);
  }
  if (spec.norms.qk) {
    vector(Role::kQNorm, layer.head_dim);
    vector(Role::kKNorm, layer.head_dim);
  }
  matrix(Role::kAttnOutput, spec.width, q_rows);
  if (spec.norms.post_attn) vector(Role::kPostAttnNorm, spec.width);
  vector(Role::kFfnNorm, spec.width);
  matrix(Role::kGate, layer.ffn_width, spec.width);
  matrix(Role::kUp, layer.ffn_width, spec.width);
  matrix(Role::kDown, spec.width, layer.ffn_width);
  if (spec.norms.post_ffn) vector(Role::kPostFfnNorm, spec.width);
}

std::string name_of(const ModelSource& source, const TensorKey& key) {
  const TensorName* name = find_tensor_name(*source.arch, key.first);
  OCTAVO_CHECK(name != nullptr, "a row names every tensor that its norm plan asks for");
  return fmt::format(fmt::runtime(name->*source.names), key.second);
}

Result<SourceTensor> take(const ModelSource& source, const StoredTensor& stored, const TensorNeed& need) {
  if (!stored.type) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: tensor {} has type {}; of this container F32, F16 and BF16 are read", source.path,
                             stored.name, stored.type_name),
                 std::string(stored.name)};
  }
  const bool matrix = stored.shape == std::vector<std::uint64_t>{need.rows, need.cols};
  const bool vector = need.rows == 1 && stored.shape == std::vector<std::uint64_t>{need.cols};
  if (!matrix && !vector) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: tensor {} has shape [{}], the model's sizes need [{}, {}]", source.path, stored.name,
                             fmt::join(stored.shape, ", "), need.rows, need.cols),
                 std::string(stored.name)};
  }
  return SourceTensor{{*stored.type, need.rows, need.cols}, stored.bytes.data(), nullptr};
}

}  // namespace

std::vector<TensorNeed> needs_of(const ModelSpec& spec) {
  std::vector<TensorNeed> needs = {{{Role::kTokenEmbedding, 0}, spec.vocab_size, spec.width},
                                   {{Role::kOutputNorm, 0}, 1, spec.width}};
  if (!spec.tied_embeddings) needs.push_back({{Role::kOutput, 0}, spec.vocab_size, spec.width});
  for (std::uint32_t i = 0; i < spec.layers.size(); ++i) add_layer_needs(spec, i, needs);
  return needs;
}

Result<std::map<TensorKey, SourceTensor>> bind_tensors(const ModelSource& source, const ModelSpec& spec) {
  if (source.tensors.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: the file holds a vocabulary and no weights", source.path), ""};
  }
  std::map<std::string_view, const StoredTensor*> stored;
  for (const StoredTensor& tensor : source.tensors) {
    if (!stored.emplace(tensor.name, &tensor).second) {
      return Error{ErrorCode::kCorrupt, fmt::format("{}: tensor {} occurs twice", source.path, tensor.name), ""};
    }
  }
  std::map<TensorKey, SourceTensor> bound;
  for (const TensorNeed& need : needs_of(spec)) {
    const std::string name = name_of(source, need.key);
    const auto at = stored.find(name);
    if (at == stored.end()) {
      return Error{ErrorCode::kCorrupt, fmt::format("{}: tensor {} is missing", source.path, name), name};
    }
    OCTAVO_TRY(const SourceTensor tensor, take(source, *at->second, need));
    bound.emplace(need.key, tensor);
    stored.erase(at);
  }
  for (const std::string_view side : source.side_tensors) stored.erase(side);
  if (!stored.empty()) {
    const std::string name(stored.begin()->first);
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: tensor {} ({} such) has no place in architecture {}: leaving it out would change the "
                             "model",
                             source.path, name, stored.size(), source.architecture),
                 name};
  }
  return bound;
}

}  // namespace octavo
