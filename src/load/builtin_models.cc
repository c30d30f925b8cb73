#include "load/builtin_models.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace octavo {
namespace {

struct Row {
  const char* name;
  const char* model_type;
  std::uint32_t layers, width, heads, kv_heads, head_dim, ffn_width, vocab_size, context;
  bool tied = false;
  std::uint32_t window = 0, window_period = 0;
  std::uint32_t latent_rank = 0, latent_rope_dim = 0;
  std::uint64_t parameters = 0;
};

// From the config.json files that the models were published with; of Gemma 3 from 4B on, the text model.
constexpr auto kRows = std::to_array<Row>({
    {"llama-65b", "llama", 80, 8192, 64, 64, 128, 22016, 32000, 2048},
    {"llama-2-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32000, 4096},
    {"llama-2-13b", "llama", 40, 5120, 40, 40, 128, 13824, 32000, 4096},
    {"llama-2-70b", "llama", 80, 8192, 64, 8, 128, 28672, 32000, 4096},
    {"llama-3-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192},
    {"llama-3-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 8192},
    {"llama-3.1-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072},
    {"llama-3.1-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 131072},
    {"llama-3.1-405b", "llama", 126, 16384, 128, 8, 128, 53248, 128256, 131072},
    {"llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, true},
    {"llama-3.2-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072, true},
    {"llama-3.3-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 131072},
    {"tinyllama-1.1b", "llama", 22, 2048, 32, 4, 64, 5632, 32000, 2048},
    {"smollm2-135m", "llama", 30, 576, 9, 3, 64, 1536, 49152, 8192, true},
    {"mistral-7b", "mistral", 32, 4096, 32, 8, 128, 14336, 32000, 32768, false, 4096},  // v0.1: later ones, no window
    {"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, true},
    {"qwen3-1.7b", "qwen3", 28, 2048, 16, 8, 128, 6144, 151936, 40960, true},
    {"qwen3-4b", "qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960, true},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960},
    {"qwen3-14b", "qwen3", 40, 5120, 40, 8, 128, 17408, 151936, 40960},
    {"qwen3-32b", "qwen3", 64, 5120, 64, 8, 128, 25600, 151936, 40960},
    {"gemma-3-270m", "gemma3_text", 18, 640, 4, 1, 256, 2048, 262144, 32768, true, 512, 6},
    {"gemma-3-1b", "gemma3_text", 26, 1152, 4, 1, 256, 6912, 262144, 32768, true, 512, 6},
    {"gemma-3-4b", "gemma3_text", 34, 2560, 8, 4, 256, 10240, 262208, 131072, true, 1024, 6},
    {"gemma-3-12b", "gemma3_text", 48, 3840, 16, 8, 256, 15360, 262208, 131072, true, 1024, 6},
    {"gemma-3-27b", "gemma3_text", 62, 5376, 32, 16, 128, 21504, 262208, 131072, true, 1024, 6},
    {"deepseek-v3", "deepseek_v3", 61, 7168, 128, 128, 0, 18432, 129280, 163840, false, 0, 0, 512, 64, 671'026'419'200},
});

}  // namespace

std::optional<BuiltinModel> find_builtin_model(std::string_view name) {
  const auto row = std::ranges::find_if(kRows, [&](const Row& r) { return r.name == name; });
  if (row == kRows.end()) return std::nullopt;
  nlohmann::json config = {{"model_type", row->model_type},
                           {"num_hidden_layers", row->layers},
                           {"hidden_size", row->width},
                           {"num_attention_heads", row->heads},
                           {"num_key_value_heads", row->kv_heads},
                           {"intermediate_size", row->ffn_width},
                           {"vocab_size", row->vocab_size},
                           {"max_position_embeddings", row->context},
                           {"tie_word_embeddings", row->tied}};
  if (row->head_dim != 0) config["head_dim"] = row->head_dim;
  if (row->window != 0) config["sliding_window"] = row->window;
  if (row->window_period != 0) config["sliding_window_pattern"] = row->window_period;
  if (row->latent_rank != 0)
    config["kv_lora_rank"] = row->latent_rank, config["qk_rope_head_dim"] = row->latent_rope_dim;
  return BuiltinModel{config.dump(), row->parameters};
}

std::vector<std::string> builtin_model_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

}  // namespace octavo
