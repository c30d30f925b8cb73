#include "load/open_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include "kv/layout.h"
#include "load/bind_tensors.h"
#include "load/model_source.h"
#include "load/source_key.h"
#include "tensor/dequantize.h"
#include "tensor/paged_kv.h"

namespace octavo {
namespace {

Result<ModelSource> open_source(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? open_hf_source(path) : open_gguf_source(path);
}

Result<ModelSpec> spec_of(const ModelSource& source) {
  auto spec = make_spec(*source.arch, source.facts);
  if (!spec)
    spec = Error{spec.error().code, fmt::format("{}: {}", source.path, spec.error().message), spec.error().field};
  return spec;
}

std::string attention_kind(const std::vector<LayerSpec>& layers) {
  const std::uint32_t heads = layers[0].num_heads, kv_heads = layers[0].num_kv_heads;
  const bool equal = std::all_of(layers.begin(), layers.end(), [&](const LayerSpec& layer) {
    return layer.num_heads == heads && layer.num_kv_heads == kv_heads;
  });
  if (!equal) return "GQA, by layer";
  if (heads == kv_heads) return "MHA";
  return fmt::format("{} {}/{}", kv_heads == 1 ? "MQA" : "GQA", heads, kv_heads);
}

ModelInfo describe(const ModelSource& source, const ModelSpec& spec, KvType kv_type) {
  ModelInfo info;
  info.path = source.path;
  info.name = spec.name;
  info.architecture = source.architecture;
  info.format = source.format;
  info.file_bytes = source.file_bytes;
  for (const StoredTensor& tensor : source.tensors) {
    info.parameters += tensor.elements();
    info.weights_bytes += tensor.bytes.size();
    TypeCount& count = info.tensor_types[std::string(tensor.type_name)];
    ++count.tensors;
    count.bytes += tensor.bytes.size();
  }
  info.num_layers = static_cast<std::uint32_t>(spec.layers.size());
  info.width = spec.width;
  info.ffn_width = spec.layers[0].ffn_width;
  info.vocab_size = spec.vocab_size;
  info.context_length = spec.context_length;
  for (const LayerSpec& layer : spec.layers) {
    info.layers.push_back({.num_heads = layer.num_heads,
                           .num_kv_heads = layer.num_kv_heads,
                           .head_dim = layer.head_dim,
                           .window = layer.window});
    const KvLayerShape kept{layer.num_kv_heads, layer.head_dim, layer.window};
    info.kv_bytes_per_token += make_kv_layout(kept, kv_type, kCellTokens).payload_bytes_per_token;
  }
  info.kv_type = kv_type;
  info.attention_kind = attention_kind(spec.layers);
  info.tied_embeddings = spec.tied_embeddings;
  info.chat_template = source.chat_template;
  info.warnings = source.warnings;
  return info;
}

using OwnedBytes = std::vector<std::byte>;

std::uint64_t row_bytes(const TensorShape& tensor) {
  const TypeTraits& traits = traits_of(tensor.type);
  return std::uint64_t{tensor.cols} / traits.block_size * traits.block_bytes;
}

/// Rows (or, of a bias, elements) in interleaved rope order, (0, 1), (2, 3)…, to half-split order, (0, r/2), (1, r/2 +
/// 1)…
OwnedBytes split_halves(const std::byte* data, std::uint64_t item_bytes, const LayerSpec& layer, std::uint32_t heads,
                        std::uint32_t rot_dims) {
  OwnedBytes out(item_bytes * heads * layer.head_dim);
  const std::uint32_t half = rot_dims / 2;
  for (std::uint32_t head = 0; head < heads; ++head) {
    for (std::uint32_t i = 0; i < layer.head_dim; ++i) {
      const std::uint32_t from = i >= rot_dims ? i : i < half ? 2 * i : 2 * (i - half) + 1;
      const std::uint64_t base = std::uint64_t{head} * layer.head_dim;
      std::memcpy(out.data() + (base + i) * item_bytes, data + (base + from) * item_bytes, item_bytes);
    }
  }
  return out;
}

/// gain - 1 as stored to the gain itself, in f32.
OwnedBytes plus_one(const SourceTensor& tensor) {
  std::vector<float> gains(tensor.cols);
  dequantize(tensor.type, tensor.data, gains.size(), gains.data());
  for (float& gain : gains) gain += 1.0F;
  OwnedBytes out(gains.size() * sizeof(float));
  std::memcpy(out.data(), gains.data(), out.size());
  return out;
}

void own(SourceTensor& tensor, OwnedBytes bytes) {
  auto owned = std::make_shared<const OwnedBytes>(std::move(bytes));
  tensor.data = owned->data();
  tensor.owned = std::move(owned);
}

bool is_norm(Role role) {
  switch (role) {
    case Role::kOutputNorm:
    case Role::kAttnNorm:
    case Role::kQNorm:
    case Role::kKNorm:
    case Role::kPostAttnNorm:
    case Role::kFfnNorm:
    case Role::kPostFfnNorm: return true;
    default: return false;
  }
}

class FileCheckpoint final : public Checkpoint {
 public:
  FileCheckpoint(ModelSource source, ModelSpec spec, std::map<TensorKey, SourceTensor> tensors)
      : source_(std::move(source)),
        spec_(std::move(spec)),
        info_(describe(source_, spec_, KvType::kBF16)),
        tensors_(std::move(tensors)) {}

  [[nodiscard]] const ModelSpec& spec() const override { return spec_; }
  [[nodiscard]] const ModelInfo& info() const override { return info_; }
  [[nodiscard]] std::span<const FileMap* const> files() const override { return source_.maps; }
  [[nodiscard]] std::string source_key() const override { return octavo::source_key(source_); }

  [[nodiscard]] std::optional<TensorShape> shape(Role role, std::uint32_t layer) const override {
    const SourceTensor* stored = find(role, layer);
    if (stored == nullptr) return std::nullopt;
    TensorShape shape = *stored;
    if (gains_less_one(role)) shape.type = TensorType::kF32;
    return shape;
  }

  [[nodiscard]] std::optional<SourceTensor> tensor(Role role, std::uint32_t layer) const override {
    const SourceTensor* stored = find(role, layer);
    if (stored == nullptr) return std::nullopt;
    SourceTensor tensor = *stored;
    if (source_.interleaved_qk) undo_interleaving(role, layer, tensor);
    if (gains_less_one(role)) {
      own(tensor, plus_one(tensor));
      tensor.type = TensorType::kF32;
    }
    return tensor;
  }

 private:
  [[nodiscard]] const SourceTensor* find(Role role, std::uint32_t layer) const {
    const auto at = tensors_.find({role, role < Role::kAttnNorm ? 0 : layer});
    return at == tensors_.end() ? nullptr : &at->second;
  }
  [[nodiscard]] bool gains_less_one(Role role) const { return source_.gain_minus_one && is_norm(role); }

  void undo_interleaving(Role role, std::uint32_t layer_index, SourceTensor& tensor) const {
    const bool q = role == Role::kQ || role == Role::kQBias, k = role == Role::kK || role == Role::kKBias;
    if (!q && !k) return;
    const LayerSpec& layer = spec_.layers[layer_index];
    const bool bias = role == Role::kQBias || role == Role::kKBias;
    const std::uint64_t item_bytes = bias ? traits_of(tensor.type).block_bytes : row_bytes(tensor);
    own(tensor, split_halves(tensor.data, item_bytes, layer, q ? layer.num_heads : layer.num_kv_heads,
                             spec_.ropes[layer.rope].rot_dims));
  }

  ModelSource source_;
  ModelSpec spec_;
  ModelInfo info_;
  std::map<TensorKey, SourceTensor> tensors_;  // as stored
};

/// The elements of a quantised bias cannot be moved one by one.
Result<> check_movable(const ModelSource& source, const std::map<TensorKey, SourceTensor>& tensors) {
  for (const auto& [key, tensor] : tensors) {
    const bool bias = key.first == Role::kQBias || key.first == Role::kKBias;
    if (bias && source.interleaved_qk && traits_of(tensor.type).block_size != 1) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}: the q and k biases are quantised as {}; F32, F16 and BF16 are supported",
                               source.path, traits_of(tensor.type).name),
                   ""};
    }
  }
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_checkpoint(const std::string& path) {
  OCTAVO_TRY(ModelSource source, open_source(path));
  OCTAVO_TRY(ModelSpec spec, spec_of(source));
  OCTAVO_TRY(auto tensors, bind_tensors(source, spec));
  OCTAVO_CHECK_OK(check_movable(source, tensors));
  return std::unique_ptr<Checkpoint>(
      std::make_unique<FileCheckpoint>(std::move(source), std::move(spec), std::move(tensors)));
}

Result<ModelInfo> read_model_info(const std::string& path, KvType kv_type) {
  OCTAVO_TRY(const ModelSource source, open_source(path));
  OCTAVO_TRY(const ModelSpec spec, spec_of(source));
  return describe(source, spec, kv_type);
}

}  // namespace octavo
