// octavo inspect: what a model file is, without loading its weights.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/jsonl.h"
#include "cli/model_names.h"
#include "octavo/model_info.h"
#include "octavo/pack.h"

namespace octavo {
namespace {

struct InspectOptions {
  std::string model, kv_type = "bf16";
  bool json = false;
};

const char* attention_kind(const LayerInfo& layer) {
  if (layer.num_kv_heads == layer.num_heads) return "MHA";
  return layer.num_kv_heads == 1 ? "MQA" : "GQA";
}

Json optional_id(std::optional<TokenId> id) { return id ? Json(id->value) : Json(nullptr); }

Json tokenizer_json(const TokenizerInfo& tokenizer) {
  Json ends = Json::array();
  for (const TokenId id : tokenizer.end_of_generation) ends.push_back(id.value);
  return {
      {"description", tokenizer.description}, {"vocab_size", tokenizer.vocab_size}, {"bos", optional_id(tokenizer.bos)},
      {"eos", optional_id(tokenizer.eos)},    {"end_of_generation", ends},          {"add_bos", tokenizer.add_bos}};
}

Json to_json(const ModelInfo& info, const std::optional<PackReport>& pack) {
  Json types = Json::object(), layers = Json::array();
  for (const auto& [type, count] : info.tensor_types) {
    types[type] = {{"tensors", count.tensors}, {"bytes", count.bytes}};
  }
  for (const LayerInfo& layer : info.layers) {
    layers.push_back({{"attention", attention_kind(layer)},
                      {"heads", layer.num_heads},
                      {"kv_heads", layer.num_kv_heads},
                      {"head_dim", layer.head_dim},
                      {"window", layer.window == 0 ? Json(nullptr) : Json(layer.window)}});
  }
  return {{"path", info.path},
          {"name", info.name},
          {"architecture", info.architecture},
          {"format", info.format},
          {"file_bytes", info.file_bytes},
          {"parameters", info.parameters},
          {"weights_bytes", info.weights_bytes},
          {"tensor_types", types},
          {"pack", pack ? Json{{"path", pack->path}, {"bytes", pack->bytes}} : Json(nullptr)},
          {"num_layers", info.num_layers},
          {"width", info.width},
          {"ffn_width", info.ffn_width},
          {"vocab_size", info.vocab_size},
          {"context_length", info.context_length},
          {"attention", info.attention_kind},
          {"layers", layers},
          {"tied_embeddings", info.tied_embeddings},
          {"kv_type", kv_type_name(info.kv_type)},
          {"kv_bytes_per_token", info.kv_bytes_per_token},
          {"tokenizer", info.tokenizer ? tokenizer_json(*info.tokenizer) : Json(nullptr)},
          {"chat_template", info.chat_template ? Json(*info.chat_template) : Json(nullptr)},
          {"warnings", info.warnings}};
}

void row(const char* name, const std::string& value) { fmt::print("{:<16}{}\n", name, value); }

/// "0-4: GQA 9/3 x 64, full; 5: ..." : runs of equal layers.
void print_layers(const std::vector<LayerInfo>& layers) {
  const auto same = [](const LayerInfo& a, const LayerInfo& b) {
    return a.num_heads == b.num_heads && a.num_kv_heads == b.num_kv_heads && a.head_dim == b.head_dim &&
           a.window == b.window;
  };
  for (std::size_t begin = 0, end = 0; begin < layers.size(); begin = end) {
    while (end < layers.size() && same(layers[begin], layers[end])) ++end;
    const LayerInfo& layer = layers[begin];
    const std::string which = end - begin == 1 ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, end - 1);
    const std::string reach = layer.window == 0 ? "full" : fmt::format("window {}", layer.window);
    row(begin == 0 ? "layers" : "", fmt::format("{:<7} {} {}/{} heads of {}, {}", which, attention_kind(layer),
                                                layer.num_heads, layer.num_kv_heads, layer.head_dim, reach));
  }
}

void print_tokenizer(const TokenizerInfo& tokenizer) {
  const auto name = [](std::optional<TokenId> id) { return id ? fmt::format("{}", id->value) : std::string("none"); };
  std::string ends;
  for (const TokenId id : tokenizer.end_of_generation) ends += fmt::format(" {}", id.value);
  row("tokenizer", fmt::format("{}, {} tokens", tokenizer.description, tokenizer.vocab_size));
  row("",
      fmt::format("bos {} ({}), eos {}, generation ends at:{}", name(tokenizer.bos),
                  tokenizer.add_bos ? "added" : "not added", name(tokenizer.eos), ends.empty() ? " nothing" : ends));
}

void print(const ModelInfo& info, const std::optional<PackReport>& pack) {
  row("name", info.name);
  row("file", fmt::format("{}, {}, {}", info.path, info.format, human_bytes(info.file_bytes)));
  row("architecture", info.architecture);
  row("parameters", human_count(info.parameters));
  row("weights", human_bytes(info.weights_bytes));
  for (const auto& [type, count] : info.tensor_types) {
    row("", fmt::format("{:<8} {:>5} tensors {:>12}", type, count.tensors, human_bytes(count.bytes)));
  }
  row("packed", pack ? fmt::format("{}: {}", human_bytes(pack->bytes), pack->path)
                     : "not in the cache: the first start does it, or octavo pack");
  row("shape", fmt::format("{} layers, width {}, ffn {}, vocabulary {}, {} embeddings", info.num_layers, info.width,
                           info.ffn_width, info.vocab_size, info.tied_embeddings ? "tied" : "untied"));
  row("context", fmt::format("{} tokens", info.context_length));
  row("attention", info.attention_kind);
  print_layers(info.layers);
  row("KV cache", fmt::format("{} bytes per token as {}", info.kv_bytes_per_token, kv_type_name(info.kv_type)));
  if (info.tokenizer) {
    print_tokenizer(*info.tokenizer);
  } else {
    row("tokenizer", "none");
  }
  row("chat template", info.chat_template ? fmt::format("{} characters", info.chat_template->size())
                                          : "none (a base model): chat needs --chat-template FILE");
  for (const std::string& warning : info.warnings) row("warning", warning);
}

Result<> inspect(const InspectOptions& options) {
  OCTAVO_TRY(const std::string path, resolve_model(options.model));
  OCTAVO_TRY(const KvType kv_type, parse_kv_type(options.kv_type));
  OCTAVO_TRY(const ModelInfo info, inspect_model(path, kv_type));
  EngineConfig config;
  config.model = path;
  const std::optional<PackReport> pack = find_pack(config);
  if (options.json) {
    std::cout << to_json(info, pack).dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
  } else {
    print(info, pack);
  }
  return Ok{};
}

}  // namespace

Command inspect_command(CLI::App& program) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* app = program.add_subcommand("inspect", "Show what a model file holds and what a token costs");
  app->add_option("MODEL", options->model, "smollm2, gemma3-270m, a GGUF file or a model folder")->required();
  app->add_option("--kv-type", options->kv_type, "element type of the KV cache to count with (default bf16)")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}));
  app->add_flag("--json", options->json, "print JSON");
  return {app, [options] { return inspect(*options); }};
}

}  // namespace octavo
