#include "cli/common.h"

#include <cstdint>
#include <limits>

#include "cli/format.h"
#include "cli/model_names.h"
#include "cli/progress.h"

namespace octavo {
namespace {

CLI::Validator any_positive() {
  return CLI::Range(std::uint32_t{1}, std::numeric_limits<std::uint32_t>::max()).description("");
}

void set_kv_bytes(EngineConfig& config, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) throw CLI::ValidationError("--kv-bytes", bytes.error().message);
  config.kv_bytes = *bytes;
}

}  // namespace

void add_engine_options(CLI::App& app, EngineOptions& options, ModelWord word) {
  EngineConfig& config = options.config;
  app.add_option(word == ModelWord::kPositional ? "-m,--model,MODEL" : "-m,--model", options.model,
                 "smollm2, gemma3-270m, a GGUF file or a model folder")
      ->capture_default_str();

  const char* numerics = "Numerics";
  app.add_option_function<std::string>(
         "--kv-type", [&config](const std::string& name) { config.kv_type = *parse_kv_type(name); },
         "element type of the KV cache (default bf16)")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}))
      ->group(numerics);
  app.add_option_function<std::string>(
         "--dequantize", [&config](const std::string&) { config.dequantize_f32 = true; },
         "load the weights as f32 and compute in float32 throughout")
      ->check(CLI::IsMember({"f32"}))
      ->group(numerics);

  const char* engine = "Engine";
  app.add_option("--threads", config.threads, "compute threads (default: the cores this process may use)")
      ->check(CLI::Range(std::uint32_t{1}, std::uint32_t{1024}))
      ->group(engine);
  app.add_option_function<std::string>(
         "--kv-bytes", [&config](const std::string& text) { set_kv_bytes(config, text); },
         "size of the KV pool, like 2GiB (default: half of what memory leaves)")
      ->group(engine);
  app.add_option("--max-model-len", config.max_model_len, "longest request, prompt and output, in tokens")
      ->check(any_positive())
      ->group(engine);
  app.add_option("--max-num-seqs", config.max_num_seqs, "sequences that run at once")
      ->check(any_positive())
      ->capture_default_str()
      ->group(engine);
  app.add_option("--max-num-batched-tokens", config.max_num_batched_tokens, "token budget of a step")
      ->check(any_positive())
      ->capture_default_str()
      ->group(engine);
  app.add_option("--block-size", config.block_tokens, "tokens per KV block")
      ->check(CLI::IsMember({16U, 32U, 64U, 128U, 256U}))
      ->capture_default_str()
      ->group(engine);
  app.add_option_function<std::string>(
         "--batching",
         [&config](const std::string& name) {
           config.batching = name == "static" ? Batching::kStatic : Batching::kContinuous;
         },
         "continuous (default), or static: a batch closes until its longest ends")
      ->check(CLI::IsMember({"continuous", "static"}))
      ->group(engine);
  app.add_option_function<std::string>(
         "--policy",
         [&config](const std::string& name) {
           config.policy = name == "priority" ? PolicyKind::kPriority : PolicyKind::kFcfs;
         },
         "who runs first: fcfs (default) or priority")
      ->check(CLI::IsMember({"fcfs", "priority"}))
      ->group(engine);
  app.add_flag_callback(
         "--no-kv-cache", [&config] { config.kv_cache = false; },
         "recompute everything for each token: slow, the same bits")
      ->group(engine);
  app.add_option("--chat-template", config.chat_template_file, "Jinja file used instead of the model's own template")
      ->check(CLI::ExistingFile)
      ->group(engine);
}

Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& options) {
  EngineConfig config = options.config;
  OCTAVO_TRY(config.model, resolve_model(options.model));
  ProgressBar bar(ProgressBar::Unit::kBytes);
  return Engine::load(
      config, [&bar](const char* what, std::uint64_t done, std::uint64_t total) { bar.update(what, done, total); });
}

Result<const Tokenizer*> tokenizer_of(const Engine& engine) {
  if (engine.tokenizer() != nullptr) return engine.tokenizer();
  return Error{ErrorCode::kUnsupported,
               engine.report().model.path + " has no tokenizer: give token ids instead of text", "MODEL"};
}

}  // namespace octavo
