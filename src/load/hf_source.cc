#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "base/file_map.h"
#include "load/hf_config.h"
#include "load/json_fields.h"
#include "load/model_source.h"
#include "load/safetensors.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const FileMap& map) {
  return {reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()};
}

struct WeightFile {
  FileMap map;
  SafeTensors contents;
};

/// model.safetensors, or the shards that model.safetensors.index.json lists.
Result<std::vector<std::string>> weight_paths(const fs::path& folder) {
  const fs::path index = folder / "model.safetensors.index.json";
  if (!fs::exists(index)) return std::vector{(folder / "model.safetensors").string()};
  OCTAVO_TRY(const FileMap map, FileMap::open(index.string()));
  OCTAVO_TRY(const nlohmann::json json, parse_json_object(index.string(), text_of(map)));
  const JsonFields fields(index.string(), json);
  OCTAVO_TRY(const auto weight_map, fields.object("weight_map"));
  if (!weight_map) return fields.refuse("weight_map", "is missing");
  std::set<std::string> names;
  for (const auto& [tensor, file] : fields.find("weight_map")->items()) {
    if (!file.is_string()) return fields.refuse("weight_map", fmt::format("has no file name for {}", tensor));
    const auto name = file.get<std::string>();
    if (fs::path(name).filename() != name) {
      return fields.refuse("weight_map", fmt::format("names '{}', which is not a file of this folder", name));
    }
    names.insert(name);
  }
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back((folder / name).string());
  return paths;
}

/// chat_template.jinja, or the field of tokenizer_config.json.
Result<std::optional<std::string>> read_chat_template(const fs::path& folder) {
  const fs::path file = folder / "chat_template.jinja", config = folder / "tokenizer_config.json";
  if (fs::exists(file)) {
    OCTAVO_TRY(const FileMap map, FileMap::open(file.string()));
    return std::optional(std::string(text_of(map)));
  }
  if (!fs::exists(config)) return std::optional<std::string>();
  OCTAVO_TRY(const FileMap map, FileMap::open(config.string()));
  OCTAVO_TRY(const nlohmann::json json, parse_json_object(config.string(), text_of(map)));
  return JsonFields(config.string(), json).get<std::string>("chat_template");
}

}  // namespace

Result<ModelSource> open_hf_source(const std::string& folder_path) {
  const fs::path folder = fs::path(folder_path) / "";
  const std::string config_path = (folder / "config.json").string();
  struct Files {
    FileMap config;
    std::vector<WeightFile> weights;
  };
  OCTAVO_TRY(FileMap config_map, FileMap::open(config_path));
  auto files = std::make_shared<Files>(Files{std::move(config_map), {}});
  OCTAVO_TRY(HfConfig config, parse_hf_config(config_path, text_of(files->config)));
  OCTAVO_TRY(const auto paths, weight_paths(folder));
  for (const std::string& path : paths) {
    OCTAVO_TRY(FileMap map, FileMap::open(path));
    OCTAVO_TRY(SafeTensors contents, parse_safetensors(path, map.bytes()));
    files->weights.push_back({std::move(map), std::move(contents)});
  }

  ModelSource source;
  source.path = folder_path;
  source.format = "safetensors";
  source.architecture = config.model_type;
  source.arch = config.arch;
  source.facts = std::move(config.facts);
  source.facts.name = folder.parent_path().filename().string();
  source.names = &TensorName::hf;
  source.gain_minus_one = source.arch->hf_gain_minus_one;
  source.headers.push_back(files->config.bytes());
  source.maps.push_back(&files->config);
  for (const WeightFile& file : files->weights) {
    source.file_bytes += file.map.bytes().size();
    source.maps.push_back(&file.map);
    source.headers.push_back(file.map.bytes().first(file.contents.header_bytes));
    for (const SafeTensor& tensor : file.contents.tensors) {
      source.tensors.push_back({.name = tensor.name,
                                .type_name = tensor.dtype,
                                .type = tensor.type,
                                .shape = tensor.shape,
                                .bytes = tensor.bytes});
    }
  }
  if (source.facts.tied_embeddings) source.side_tensors = {"lm_head.weight"};
  OCTAVO_TRY(source.chat_template, read_chat_template(folder));
  source.files = std::move(files);
  return source;
}

}  // namespace octavo
