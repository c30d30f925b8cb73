#include "cli/common.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/format.h"
#include "cli/model_names.h"
#include "cli/progress.h"
#include "cli/validators.h"

namespace octavo {
namespace {

constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();

std::uint64_t bytes_of(const char* flag, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) throw CLI::ValidationError(flag, bytes.error().message);
  return *bytes;
}

/// The engine's options of one group in --help.
class Options {
 public:
  Options(CLI::App& app, const char* group) : app_(app), group_(group) {}

  template <class T>
  CLI::Option* add(const char* flag, T& value, const char* about) {
    return app_.add_option(flag, value, about)->group(group_);
  }
  template <class T>
  void number(const char* flag, T& value, std::uint64_t least, std::uint64_t most, const char* about) {
    CLI::Option* option = add(flag, value, about)->check(whole_number(least, most));
    if constexpr (std::is_integral_v<T>) option->capture_default_str();
  }
  /// Limits of times and shares are the engine's to check: it names flag, value and limit.
  template <class Set>
  void millis(const char* flag, const char* about, Set set) {
    app_.add_option_function<std::uint32_t>(
            flag, [set](std::uint32_t ms) { set(std::chrono::milliseconds(ms)); }, about)
        ->check(whole_number(0, kAny))
        ->group(group_);
  }
  void share(const char* flag, double& value, const char* about) {
    add(flag, value, about)->check(finite())->capture_default_str();
  }
  template <class E>
  void choice(const char* flag, E& value, std::initializer_list<std::pair<const char*, E>> names, const char* about) {
    std::map<std::string, E> by_name(names.begin(), names.end());
    std::vector<std::string> known;
    for (const auto& name : names) known.emplace_back(name.first);
    app_.add_option_function<std::string>(
            flag, [&value, by_name](const std::string& name) { value = by_name.at(name); }, about)
        ->check(CLI::IsMember(std::move(known)))
        ->group(group_);
  }
  template <class Set>
  void bytes(const char* flag, const char* about, Set set) {
    app_.add_option_function<std::string>(
            flag, [flag, set](const std::string& text) { set(bytes_of(flag, text)); }, about)
        ->group(group_);
  }
  template <class Set>
  void flag(const char* name, const char* about, Set set) {
    app_.add_flag_callback(name, set, about)->group(group_);
  }

 private:
  CLI::App& app_;
  const char* group_;
};

void add_numerics(CLI::App& app, EngineConfig& config) {
  Options options(app, "Numerics");
  options.choice("--kv-type", config.kv_type, {{"bf16", KvType::kBF16}, {"f16", KvType::kF16}, {"f32", KvType::kF32}},
                 "element type of the KV cache (default bf16)");
  add_numerics_option(app, config.numerics);
}

void add_memory(CLI::App& app, EngineConfig& config) {
  Options options(app, "Memory");
  options.bytes("--kv-bytes", "size of the KV pool, like 2GiB (default: --kv-fraction)",
                [&config](std::uint64_t bytes) { config.kv_bytes = bytes; });
  options.share("--kv-fraction", config.kv_fraction, "the KV pool as a part of what memory leaves");
  options.choice("--kv-memory", config.kv_memory,
                 {{"paged", KvMemory::kPaged}, {"dynamic", KvMemory::kDynamic}, {"static", KvMemory::kStatic}},
                 "paged (default); dynamic: runs that grow; static: a run for the longest request");
  options.add("--block-size", config.block_tokens, "tokens per KV block")
      ->check(CLI::IsMember({16U, 32U, 64U, 128U, 256U}))
      ->capture_default_str();
  options.flag("--prefix-caching", "share blocks of equal prefixes (default where memory is paged)",
               [&config] { config.prefix_caching = true; });
  options.flag("--no-prefix-caching", "compute every prompt whole", [&config] { config.prefix_caching = false; });
  app.get_option("--no-prefix-caching")->excludes("--prefix-caching");
  options.share("--watermark", config.watermark, "part of the pool that admissions leave free");
  options.choice(
      "--preemption", config.preemption,
      {{"auto", PreemptionMode::kAuto}, {"recompute", PreemptionMode::kRecompute}, {"swap", PreemptionMode::kSwap}},
      "how preempted sequences come back: auto (default, what costs less), recompute or swap");
  options.bytes("--swap-bytes", "host memory for swapped KV, taken when first needed (default 1GiB)",
                [&config](std::uint64_t bytes) { config.swap_bytes = bytes; });
  options.flag("--no-kv-cache", "recompute everything for each token: slow, the same bits",
               [&config] { config.kv_cache = false; });
}

void add_scheduling(CLI::App& app, EngineConfig& config) {
  Options options(app, "Scheduling");
  options.number("--max-model-len", config.max_model_len, 1, kAny, "longest request, prompt and output, in tokens");
  options.number("--max-num-seqs", config.max_num_seqs, 1, 4096, "sequences that run at once");
  app.add_option_function<std::string>(
         "--max-num-batched-tokens",
         [&config](const std::string& text) {
           config.max_num_batched_tokens.reset();
           std::uint32_t tokens = 0;
           if (text != "auto" && CLI::detail::lexical_cast(text, tokens)) config.max_num_batched_tokens = tokens;
         },
         "token budget of a step, or auto (default): measured, 8 steps of one token long")
      ->check(auto_or(whole_number(1, 65536)))
      ->group("Scheduling");
  options.millis("--target-tpot-ms", "steps of running streams take at most this long",
                 [&config](std::chrono::milliseconds ms) { config.target_tpot = ms; });
  options.millis("--target-ttft-ms", "prompts may take larger steps to be done by then",
                 [&config](std::chrono::milliseconds ms) { config.target_ttft = ms; });
  options.number("--long-prefill-token-threshold", config.long_prefill_token_threshold, 0, kAny,
                 "most prompt tokens of one sequence in one step; 0: no limit");
  options.number("--max-queued", config.max_queued, 1, kAny, "requests that may wait; more are refused");
  options.choice("--batching", config.batching, {{"continuous", Batching::kContinuous}, {"static", Batching::kStatic}},
                 "continuous (default), or static: a batch closes until its longest ends");
  options.choice(
      "--policy", config.policy,
      {{"fcfs", PolicyKind::kFcfs}, {"priority", PolicyKind::kPriority}, {"shortest", PolicyKind::kShortestRemaining}},
      "who runs first: fcfs (default), priority or shortest");
  options.millis("--aging-ms", "waiting that outweighs one step of priority (default 10000); 0: strict priority",
                 [&config](std::chrono::milliseconds ms) { config.aging = ms; });
}

}  // namespace

void add_numerics_option(CLI::App& app, Numerics& numerics) {
  Options(app, "Numerics")
      .choice("--numerics", numerics, {{"int8", Numerics::kInt8}, {"bf16", Numerics::kBF16}, {"f32", Numerics::kF32}},
              "what linear layers compute in: int8 (default: weights as they are, int8 activations), bf16 or f32");
}

void add_engine_options(CLI::App& app, EngineOptions& options, ModelWord word) {
  EngineConfig& config = options.config;
  app.add_option(word == ModelWord::kPositional ? "-m,--model,MODEL" : "-m,--model", options.model,
                 "smollm2, gemma3-270m, a GGUF file or a model folder")
      ->capture_default_str();

  Options engine(app, "Engine");
  engine.number("--threads", config.threads, 1, 1024, "compute threads (default: the cores this process may use)");
  engine.flag("--pin", "bind each compute thread to a core of its own, where no other program needs them",
              [&config] { config.pin_threads = true; });
  engine.add("--chat-template", config.chat_template_file, "Jinja file used instead of the model's own template")
      ->check(CLI::ExistingFile);
  engine.flag("--no-cache", "pack the weights anew, in memory, and keep nothing on disk",
              [&config] { config.pack_cache = false; });
  engine.bytes("--cache-bytes", "what the folder of packed weights may hold (default 64GiB)",
               [&config](std::uint64_t bytes) { config.cache_bytes = bytes; });
  engine.add("--trace", config.trace_file, "write steps and KV events to this file as they happen");
  add_scheduling(app, config);
  add_memory(app, config);
  add_numerics(app, config);
}

Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& options) {
  EngineConfig config = options.config;
  OCTAVO_TRY(config.model, resolve_model(options.model));
  std::optional<ProgressBar> bar(ProgressBar::Unit::kBytes);
  OCTAVO_TRY(std::unique_ptr<Engine> engine,
             Engine::load(config, [&bar](const char* what, std::uint64_t done, std::uint64_t total) {
               bar->update(what, done, total);
             }));
  bar.reset();
  if (const std::string& notice = engine->report().weights.notice; !notice.empty()) {
    fmt::print(stderr, "notice: {}\n", notice);
  }
  return engine;
}

Result<const Tokenizer*> tokenizer_of(const Engine& engine) {
  if (engine.tokenizer() != nullptr) return engine.tokenizer();
  return Error{ErrorCode::kUnsupported,
               engine.report().model.path + " has no tokenizer: give token ids instead of text", "MODEL"};
}

}  // namespace octavo
