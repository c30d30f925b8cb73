#include "octavo/model_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/file_map.h"
#include "engine/checkpoint_shape.h"
#include "kernels/pack.h"
#include "load/assumed_checkpoint.h"
#include "load/builtin_models.h"
#include "load/foreign_shape.h"
#include "load/hf_config.h"
#include "load/json_fields.h"
#include "load/open_checkpoint.h"
#include "model/weights.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

const char* role_name(Role role) {
  switch (role) {
    case Role::kTokenEmbedding: return kEmbeddingRole;
    case Role::kOutput: return kHeadRole;
    case Role::kQ: return "q";
    case Role::kK: return "k";
    case Role::kV: return "v";
    case Role::kAttnOutput: return "attention output";
    case Role::kGate: return "gate";
    case Role::kUp: return "up";
    case Role::kDown: return "down";
    default: return "";
  }
}

/// Panels have one format for each type.
std::string format_name(WeightFormat format) {
  for (const std::string& name : tensor_type_names()) {
    if (packed_format_of(*tensor_type_from_name(name)) == format) return name;
  }
  return "";
}

void add_matrix(std::vector<MatrixShape>& matrices, const MatrixShape& one) {
  const auto same = std::ranges::find_if(matrices, [&](const MatrixShape& m) {
    return m.role == one.role && m.format == one.format && m.outputs == one.outputs && m.inputs == one.inputs;
  });
  if (same == matrices.end()) {
    matrices.push_back(one);
  } else {
    ++same->count;
    same->packed_bytes += one.packed_bytes;
  }
}

std::vector<MatrixShape> matrices_of(const Checkpoint& checkpoint, const WeightsPlan& plan) {
  std::vector<MatrixShape> matrices;
  for (const WeightsPlan::Placement& p : plan.placements()) {
    if (!p.is_matrix) continue;
    MatrixShape matrix{role_name(p.role), format_name(p.matrix.format), p.matrix.n, p.matrix.k, 1, p.bytes, true};
    matrix.per_token = p.role != Role::kTokenEmbedding && p.role != Role::kOutput;
    add_matrix(matrices, matrix);
    if (p.role == Role::kTokenEmbedding && checkpoint.spec().tied_embeddings) {
      matrix.role = kHeadRole, matrix.packed_bytes = 0;
      add_matrix(matrices, matrix);
    }
  }
  return matrices;
}

Error of_field(ErrorCode code, std::string message, const char* field) { return {code, std::move(message), field}; }

Result<TensorType> parse_format(const std::string& name) {
  if (const auto type = tensor_type_from_name(name)) return *type;
  return of_field(ErrorCode::kInvalidArgument,
                  fmt::format("--weights-format {}: there is no such format; these are: {}", name,
                              fmt::join(tensor_type_names(), ", ")),
                  "weights_format");
}

/// What a config says that its weights are: "bfloat16".
Result<TensorType> format_of_config(const std::string& path, std::string_view text) {
  OCTAVO_TRY(const nlohmann::json json, parse_json_object(path, text));
  const JsonFields config(path, json);
  for (const char* key : {"dtype", "torch_dtype"}) {
    OCTAVO_TRY(const auto dtype, config.get<std::string>(key));
    if (dtype == "float32") return TensorType::kF32;
    if (dtype == "float16") return TensorType::kF16;
  }
  return TensorType::kBF16;
}

struct Asked {
  const std::string& weights_format;
  Numerics numerics;
};

Result<ModelShape> shape_of_config(const std::string& path, std::string_view text, const Asked& asked,
                                   StoredWeights stored) {
  OCTAVO_TRY(const TensorType type,
             asked.weights_format.empty() ? format_of_config(path, text) : parse_format(asked.weights_format));
  auto config = parse_hf_config(path, text);
  Result<ModelSpec> spec = config ? make_spec(*config->arch, config->facts) : Result<ModelSpec>(config.error());
  ModelShape shape;
  if (spec && stored.bytes == 0) {
    OCTAVO_TRY(const AssumedCheckpoint assumed, AssumedCheckpoint::make(std::move(*spec), type, path));
    shape = shape_of(assumed, asked.numerics);
    shape.architecture = config->model_type;
  } else {
    if (!spec && spec.error().code != ErrorCode::kUnsupported) return spec.error();
    OCTAVO_TRY(shape, shape_of_foreign_config(path, text));
    if (!spec) shape.unsupported = spec.error().message;
    const TypeTraits& traits = traits_of(type);
    shape.parameters = stored.parameters;
    shape.weights_bytes = stored.bytes != 0 ? stored.bytes : stored.parameters / traits.block_size * traits.block_bytes;
    shape.packed_weights_bytes = shape.weights_bytes;
  }
  if (stored.bytes == 0) shape.weights_format = traits_of(type).name;
  return shape;
}

Result<ModelShape> shape_of_config_file(const std::string& path, const Asked& asked, StoredWeights stored) {
  OCTAVO_TRY(const FileMap map, FileMap::open(path));
  const std::string_view text(reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size());
  OCTAVO_TRY(ModelShape shape, shape_of_config(path, text, asked, stored));
  shape.name = fs::absolute(path).lexically_normal().parent_path().filename().string();
  return shape;
}

Result<> refuse_format(const std::string& path, const Asked& asked) {
  if (asked.weights_format.empty()) return Ok{};
  return of_field(ErrorCode::kInvalidArgument,
                  fmt::format("--weights-format {}: {} has weights, and their own formats", asked.weights_format, path),
                  "weights_format");
}

/// Of a file or folder with weights. What this build cannot run is told by its headers alone.
Result<ModelShape> shape_of_weights(const std::string& path, const Asked& asked, bool folder) {
  OCTAVO_CHECK_OK(refuse_format(path, asked));
  const auto checkpoint = open_checkpoint(path);
  if (checkpoint) return shape_of(**checkpoint, asked.numerics);
  if (checkpoint.error().code != ErrorCode::kUnsupported) return checkpoint.error();
  Result<ModelShape> shape = checkpoint.error();
  if (folder) {
    OCTAVO_TRY(const StoredWeights stored, stored_weights(path));
    shape = shape_of_config_file((fs::path(path) / "config.json").string(), asked, stored);
  } else {
    shape = shape_of_foreign_gguf(path);
    if (shape) shape->name = fs::path(path).stem().string();
  }
  if (!shape) return shape;
  shape->unsupported = checkpoint.error().message;
  shape->packed_weights_bytes = shape->weights_bytes;
  return shape;
}

bool has_weights(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".safetensors") return true;
  }
  return false;
}

}  // namespace

ModelShape shape_of(const Checkpoint& checkpoint, Numerics numerics) {
  const WeightsPlan plan(checkpoint, numerics);
  const ModelSpec& spec = checkpoint.spec();
  ModelShape shape;
  shape.name = spec.name;
  shape.source = checkpoint.info().path;
  shape.architecture = checkpoint.info().architecture;
  shape.width = spec.width, shape.vocab_size = spec.vocab_size, shape.context_length = spec.context_length;
  for (const LayerSpec& layer : spec.layers) {
    shape.ffn_width = std::max(shape.ffn_width, layer.ffn_width);
    shape.layers.push_back({layer.num_heads, layer.num_kv_heads, layer.head_dim, layer.window, 0});
  }
  for (const RopeSpec& rope : spec.ropes) shape.rope_dims.push_back(rope.rot_dims);
  shape.matrices = matrices_of(checkpoint, plan);
  shape.weights_bytes = checkpoint.info().weights_bytes;
  shape.packed_weights_bytes = plan.bytes();
  shape.parameters = checkpoint.info().parameters;
  return shape;
}

Result<ModelShape> read_model_shape(const std::string& model, const std::string& weights_format, Numerics numerics) {
  const Asked asked{weights_format, numerics};
  std::error_code ignored;
  if (!fs::exists(model, ignored)) {
    const auto builtin = find_builtin_model(model);
    if (!builtin) {
      return of_field(ErrorCode::kNotFound,
                      fmt::format("no such model: '{}' is neither a file nor a folder nor one of the built-in {}",
                                  model, fmt::join(builtin_model_names(), ", ")),
                      "MODEL");
    }
    OCTAVO_TRY(ModelShape shape,
               shape_of_config("built-in " + model, builtin->config, asked, {.parameters = builtin->parameters}));
    shape.name = model, shape.source = "built-in";
    return shape;
  }
  if (fs::is_directory(model, ignored)) {
    if (has_weights(model)) return shape_of_weights(model, asked, true);
    return shape_of_config_file((fs::path(model) / "config.json").string(), asked, {});
  }
  if (fs::path(model).extension() == ".json") return shape_of_config_file(model, asked, {});
  return shape_of_weights(model, asked, false);
}

std::vector<std::string> builtin_models() { return builtin_model_names(); }

}  // namespace octavo
