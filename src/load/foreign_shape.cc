#include "load/foreign_shape.h"

#include <fmt/format.h>

#include <filesystem>
#include <initializer_list>
#include <optional>

#include "base/file_map.h"
#include "load/gguf.h"
#include "load/json_fields.h"
#include "load/safetensors.h"
#include "model/spec.h"

namespace octavo {
namespace {

// As make_spec() has them: far above any model, and no product of sizes overflows.
constexpr std::uint32_t kMostWidth = 1U << 22U, kMostHeads = 1U << 12U, kMostHeadDim = 1U << 16U;
constexpr std::uint32_t kMostVocab = 1U << 24U, kMostContext = 1U << 28U;

using Keys = std::initializer_list<const char*>;

/// The first of `keys` that is there; `least` 0: none needs to be.
Result<std::uint32_t> number(const JsonFields& config, Keys keys, std::uint32_t least, std::uint32_t most) {
  for (const char* key : keys) {
    OCTAVO_TRY(const auto value, config.get<std::uint32_t>(key));
    if (!value) continue;
    if (*value >= least && *value <= most) return *value;
    return config.refuse(key, fmt::format("is {}, it must be {} to {}", *value, least, most));
  }
  if (least == 0) return 0U;
  return config.refuse(*keys.begin(), "is missing");
}

Result<> read_layer_kinds(const JsonFields& config, std::uint32_t window, std::vector<LayerShape>& layers) {
  const nlohmann::json* types = config.find("layer_types");
  if (types != nullptr) {
    if (!types->is_array() || types->size() != layers.size()) {
      return config.refuse("layer_types", fmt::format("is not a list of {} entries, one a layer", layers.size()));
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const nlohmann::json& type = (*types)[i];
      if (type != "full_attention" && type != "sliding_attention") {
        return config.refuse("layer_types",
                             "has entries other than full_attention and sliding_attention: what those keep is no KV");
      }
      if (type == "sliding_attention" && window == 0) {
        return config.refuse("sliding_window", "is missing, but layer_types needs it");
      }
      layers[i].window = type == "sliding_attention" ? window : 0;
    }
    return Ok{};
  }
  OCTAVO_TRY(const auto use, config.get<bool>("use_sliding_window"));
  if (use == false || window == 0) return Ok{};
  OCTAVO_TRY(const std::uint32_t period,
             number(config, {"sliding_window_pattern", "_sliding_window_pattern"}, 0, 4096));
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].window = period != 0 && (i + 1) % period == 0 ? 0 : window;
  return Ok{};
}

Result<LayerShape> read_layer(const JsonFields& config, std::uint32_t width) {
  LayerShape layer;
  OCTAVO_TRY(layer.num_heads, number(config, {"num_attention_heads", "n_head", "n_heads", "num_heads"}, 1, kMostHeads));
  OCTAVO_TRY(
      layer.num_kv_heads,
      number(config, {"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"}, 0, kMostHeads));
  OCTAVO_TRY(const auto multi_query, config.get<bool>("multi_query"));
  if (layer.num_kv_heads == 0) layer.num_kv_heads = multi_query == true ? 1 : layer.num_heads;
  if (layer.num_heads % layer.num_kv_heads != 0) {
    return config.refuse("num_attention_heads",
                         fmt::format("is {}, not a multiple of the {} KV heads", layer.num_heads, layer.num_kv_heads));
  }
  OCTAVO_TRY(const std::uint32_t rank, number(config, {"kv_lora_rank"}, 0, kMostHeadDim));
  if (rank != 0) {
    OCTAVO_TRY(const std::uint32_t rope, number(config, {"qk_rope_head_dim"}, 1, kMostHeadDim));
    layer.latent_dim = rank + rope;
  }
  OCTAVO_TRY(layer.head_dim, number(config, {"head_dim", "kv_channels", "attention_head_dim"}, 0, kMostHeadDim));
  if (layer.head_dim != 0) return layer;
  if (width % layer.num_heads != 0) {
    return config.refuse("head_dim", fmt::format("is missing, and the width {} is not a multiple of the {} heads",
                                                 width, layer.num_heads));
  }
  layer.head_dim = width / layer.num_heads;
  return layer;
}

}  // namespace

Result<ModelShape> shape_of_foreign_config(const std::string& path, std::string_view text) {
  OCTAVO_TRY(const nlohmann::json json, parse_json_object(path, text));
  const JsonFields top(path, json);
  ModelShape shape;
  shape.source = path;
  OCTAVO_TRY(const auto model_type, top.get<std::string>("model_type"));
  shape.architecture = model_type.value_or("unknown");
  OCTAVO_TRY(const auto inner, top.object("text_config"));
  const JsonFields& config = inner ? *inner : top;

  OCTAVO_TRY(const std::uint32_t layers,
             number(config, {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, 1, kMaxLayers));
  OCTAVO_TRY(shape.width, number(config, {"hidden_size", "n_embd", "d_model"}, 1, kMostWidth));
  OCTAVO_TRY(shape.ffn_width,
             number(config, {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}, 0, kMostWidth));
  OCTAVO_TRY(shape.vocab_size, number(config, {"vocab_size", "padded_vocab_size"}, 0, kMostVocab));
  OCTAVO_TRY(
      shape.context_length,
      number(config, {"max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_seq_len"}, 1,
             kMostContext));
  OCTAVO_TRY(const LayerShape layer, read_layer(config, shape.width));
  shape.layers.assign(layers, layer);
  OCTAVO_TRY(const std::uint32_t window, number(config, {"sliding_window"}, 0, kMostContext));
  OCTAVO_CHECK_OK(read_layer_kinds(config, window, shape.layers));
  return shape;
}

Result<ModelShape> shape_of_foreign_gguf(const std::string& path) {
  OCTAVO_TRY(const GgufFile file, GgufFile::open(path));
  OCTAVO_TRY(const auto arch, file.require<std::string_view>("general.architecture"));
  const std::string prefix = std::string(arch) + ".";
  const auto refuse = [&](const char* key, const std::string& why) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}{} {}", path, prefix, key, why), prefix + key};
  };
  const auto read = [&](const char* key, std::uint32_t least, std::uint32_t most) -> Result<std::uint32_t> {
    OCTAVO_TRY(const std::uint32_t value, file.get_or<std::uint32_t>(prefix + key, 0));
    if (value >= least && value <= most) return value;
    return refuse(key, fmt::format("is {}, it must be {} to {}", value, least, most));
  };
  const auto per_layer = [&](const char* key, std::uint32_t layers) {
    return file.get_per_layer(prefix + key, layers);
  };
  ModelShape shape;
  shape.source = path;
  shape.architecture = arch;
  OCTAVO_TRY(const std::uint32_t layers, read("block_count", 1, kMaxLayers));
  OCTAVO_TRY(shape.width, read("embedding_length", 1, kMostWidth));
  OCTAVO_TRY(shape.context_length, read("context_length", 1, kMostContext));
  OCTAVO_TRY(const auto heads, per_layer("attention.head_count", layers));
  if (!heads) return refuse("attention.head_count", "is missing");
  OCTAVO_TRY(const auto kv_heads, per_layer("attention.head_count_kv", layers));
  OCTAVO_TRY(const std::uint32_t key_length, read("attention.key_length", 0, kMostHeadDim));
  OCTAVO_TRY(const std::uint32_t rank, read("attention.kv_lora_rank", 0, kMostHeadDim));
  OCTAVO_TRY(const std::uint32_t rope, read("rope.dimension_count", rank == 0 ? 0 : 1, kMostHeadDim));
  OCTAVO_TRY(const auto ffn, per_layer("feed_forward_length", layers));
  for (std::uint32_t i = 0; i < layers; ++i) {
    LayerShape layer;
    layer.num_heads = (*heads)[i];
    layer.num_kv_heads = kv_heads ? (*kv_heads)[i] : layer.num_heads;
    if (layer.num_heads == 0 || layer.num_kv_heads == 0 || layer.num_heads > kMostHeads ||
        layer.num_heads % layer.num_kv_heads != 0) {
      return refuse("attention.head_count_kv",
                    fmt::format("gives layer {} {} heads and {} KV heads: what it keeps is no KV of whole groups", i,
                                layer.num_heads, layer.num_kv_heads));
    }
    layer.head_dim = key_length != 0 ? key_length : shape.width / layer.num_heads;
    if (layer.head_dim == 0) return refuse("embedding_length", "is less than the number of heads");
    layer.latent_dim = rank == 0 ? 0 : rank + rope;
    shape.layers.push_back(layer);
    if (ffn) shape.ffn_width = std::max(shape.ffn_width, std::min((*ffn)[i], kMostWidth));
  }
  for (const GgufTensor& tensor : file.tensors()) {
    shape.weights_bytes += tensor.bytes.size();
    std::uint64_t elements = 1;
    for (const std::uint64_t size : tensor.dims) elements *= size;
    shape.parameters += elements;
    if (tensor.name == "token_embd.weight" && tensor.dims.size() == 2 && tensor.dims[1] <= kMostVocab) {
      shape.vocab_size = static_cast<std::uint32_t>(tensor.dims[1]);
    }
  }
  return shape;
}

Result<StoredWeights> stored_weights(const std::string& folder) {
  StoredWeights sum;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    if (entry.path().extension() != ".safetensors") continue;
    OCTAVO_TRY(const FileMap map, FileMap::open(entry.path().string()));
    OCTAVO_TRY(const SafeTensors contents, parse_safetensors(entry.path().string(), map.bytes()));
    for (const SafeTensor& tensor : contents.tensors) {
      sum.bytes += tensor.bytes.size();
      std::uint64_t elements = 1;
      for (const std::uint64_t size : tensor.shape) elements *= size;
      sum.parameters += elements;
    }
  }
  if (problem) return Error{ErrorCode::kIo, fmt::format("{}: {}", folder, problem.message()), ""};
  return sum;
}

}  // namespace octavo
