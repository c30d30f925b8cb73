// octavo serve: the OpenAI-compatible server, from the banner to the drain.
#include "server/server.h"

#include <fmt/format.h>
#include <semaphore.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/binary_size.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/format.h"
#include "cli/jsonl.h"
#include "cli/model_names.h"
#include "cli/validators.h"

namespace octavo {
namespace {

struct ServeOptions {
  EngineOptions engine;
  ServerConfig server;
  std::string api_key_file;
  std::uint32_t shutdown_timeout_s = 30;
};

Result<> add_keys_of_file(const std::string& path, std::vector<std::string>& keys) {
  std::ifstream file(path);
  if (!file) return Error{ErrorCode::kNotFound, "--api-key-file: cannot read " + path, "--api-key-file"};
  const std::size_t before = keys.size();
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) keys.push_back(line);
  }
  if (keys.size() > before) return Ok{};
  return Error{ErrorCode::kInvalidArgument, "--api-key-file: no key in " + path + ", expected one per line",
               "--api-key-file"};
}

void row(const char* name, const std::string& value) { fmt::print("  {:<10} {}\n", name, value); }

void print_plan(const MemoryPlan& plan) {
  row("memory", fmt::format("{} planned of {}", binary_size(plan.total_bytes), binary_size(plan.memory_bytes)));
  for (const MemoryTag& tag : plan.tags) {
    if (tag.bytes == 0) continue;
    row("", fmt::format("{:<15}{:>14}   {}{}", tag.tag, binary_size(tag.bytes), tag.why,
                        tag.when_needed ? ", taken when needed" : ""));
  }
}

/// What became of the plan.
void print_memory(const std::vector<MemoryUse>& memory) {
  fmt::print("octavo used memory:\n");
  for (const MemoryUse& use : memory) {
    row("",
        fmt::format("{:<15}{:>14} planned{:>14} resident", use.tag, binary_size(use.planned), binary_size(use.actual)));
  }
  std::fflush(stdout);
}

void print_banner(const EngineReport& report) {
  const ModelInfo& model = report.model;
  fmt::print("octavo {}\n", OCTAVO_VERSION);
  row("model", fmt::format("{} ({}, {}), {} parameters", model.name, model.architecture, model.format,
                           human_count(model.parameters)));
  row("weights", fmt::format("{} in the file, {} packed, {} for activations", human_bytes(model.weights_bytes),
                             human_bytes(report.packed_weights_bytes), human_bytes(report.activation_bytes)));
  const WeightsReport& weights = report.weights;
  row("", weights.pack.empty() ? fmt::format("packed into memory in {} ms", weights.took.count())
                               : fmt::format("{} in {} ms: {}", weights.cached ? "from the pack cache" : "packed",
                                             weights.took.count(), weights.pack));
  row("kernels", report.isa);
  for (const std::string& reason : report.isa_not_used) row("", "not " + reason);
  row("threads", fmt::format("{}", report.threads));
  row("KV cache", fmt::format("{}, {} bytes per token, blocks of {} tokens", kv_type_name(report.kv_type),
                              report.kv_bytes_per_token, report.block_tokens));
  row("KV pool",
      fmt::format(
          "{}: {} blocks, {} tokens fit{}", human_bytes(report.kv_bytes), report.num_blocks, report.tokens_that_fit,
          report.max_model_len > report.tokens_that_fit ? ", and more of a sequence whose windows have moved on" : ""));
  constexpr const char* kMemory[] = {"paged", "dynamic", "static"};
  row("sharing",
      fmt::format("{} memory, prefix caching {}, {}", kMemory[static_cast<int>(report.kv_memory)],
                  report.prefix_caching ? "on" : "off",
                  report.swap_bytes == 0 ? std::string("preempted sequences compute again")
                                         : "preempted sequences may swap up to " + human_bytes(report.swap_bytes)));
  row("longest", fmt::format("{} tokens per request{}{}", report.max_model_len,
                             report.max_model_len_reason.empty() ? "" : ": ", report.max_model_len_reason));
  row("batching", fmt::format("up to {} sequences, {} tokens a step ({})", report.max_num_seqs,
                              report.max_num_batched_tokens, report.max_num_batched_tokens_reason));
  print_plan(report.memory);
  for (const std::string& warning : model.warnings) row("warning", warning);
}

/// Where a client on this machine reaches the server.
std::string address(const ServerConfig& config, std::uint16_t port) {
  std::string host = config.host;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return fmt::format("http://{}:{}", host, port);
}

/// `text` as one word of a shell command.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void print_ready(const Engine& engine, const ServerConfig& config, std::uint16_t port) {
  const std::string url = address(config, port);
  const bool chat = engine.chat_template() != nullptr;
  Json body = {{"model", config.served_models.front()}, {"max_tokens", 32}, {"temperature", 0}};
  if (chat) {
    body["messages"] = Json::array({{{"role", "user"}, {"content", "Which city is the capital of France?"}}});
  } else {
    body["prompt"] = "The capital of France is";
  }
  std::string command = fmt::format("curl {}/v1/{}", url, chat ? "chat/completions" : "completions");
  if (!config.api_keys.empty()) command += R"( -H "Authorization: Bearer $OCTAVO_API_KEY")";
  command += " -H 'Content-Type: application/json' -d " + shell_quoted(dump(body));
  fmt::print("octavo is ready: {}\n{}\n", url, command);
  std::fflush(stdout);
}

sem_t stop_signals;  // the one thing a signal handler may touch

/// The first SIGINT or SIGTERM drains, the second stops at once. Lives as long as the server runs.
class SignalWatch {
 public:
  SignalWatch(Server& server, std::chrono::seconds timeout) {
    sem_init(&stop_signals, 0, 0);
    struct sigaction action {};
    action.sa_handler = [](int) { sem_post(&stop_signals); };
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    first_ = std::thread([this, &server, timeout] { drain_on_signal(server, timeout); });
  }

  ~SignalWatch() {
    over_ = true;
    sem_post(&stop_signals);
    first_.join();
  }

 private:
  static void wait() {
    while (sem_wait(&stop_signals) != 0) {  // EINTR
    }
  }

  void drain_on_signal(Server& server, std::chrono::seconds timeout) {
    wait();
    if (over_) return;
    fmt::print("octavo is draining: up to {} s for what runs; a second signal stops now\n", timeout.count());
    std::fflush(stdout);
    std::atomic<bool> drained = false;
    std::thread second([&] {
      wait();
      if (!drained) server.drain(std::chrono::milliseconds(0));
    });
    const bool finished = server.drain(timeout);
    drained = true;
    sem_post(&stop_signals);
    second.join();
    fmt::print("octavo is down: {}\n", finished ? "every request was answered" : "unfinished requests were aborted");
    std::fflush(stdout);
    server.stop();
  }

  std::atomic<bool> over_ = false;
  std::thread first_;
};

Result<> serve(ServeOptions& options) {
  ServerConfig& config = options.server;
  config.version = OCTAVO_VERSION;
  if (!options.api_key_file.empty()) OCTAVO_CHECK_OK(add_keys_of_file(options.api_key_file, config.api_keys));
  options.engine.config.prefault_kv = true;  // the first users do not pay for each page
  OCTAVO_TRY(const std::unique_ptr<Engine> engine, load_engine(options.engine));
  if (config.served_models.empty()) config.served_models = {model_name(engine->report().model.path)};

  OCTAVO_TRY(const std::unique_ptr<Server> server, Server::listen(*engine, config));
  print_banner(engine->report());
  const SignalWatch watch(*server, std::chrono::seconds(options.shutdown_timeout_s));
  print_ready(*engine, config, server->port());
  server->run();
  print_memory(engine->memory());
  return Ok{};
}

}  // namespace

Command serve_command(CLI::App& program) {
  auto options = std::make_shared<ServeOptions>();
  ServerConfig& server = options->server;
  CLI::App* app = program.add_subcommand("serve", "Serve a model over the OpenAI API");
  app->add_option("--host", server.host, "address to listen on; beyond loopback it needs --api-key or --no-auth")
      ->capture_default_str();
  app->add_option("--port", server.port, "0: the system picks one")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  app->add_option("--api-key", server.api_keys, "key that clients must send; may be given several times")
      ->envname("OCTAVO_API_KEY")
      ->allow_extra_args(false);
  app->add_option("--api-key-file", options->api_key_file, "file with one key per line");
  app->add_flag("--no-auth", server.no_auth, "listen beyond loopback without a key");
  app->add_option("--served-model-name", server.served_models,
                  "name of the model for clients; may be given several times (default: the file's)")
      ->allow_extra_args(false);
  app->add_option("--shutdown-timeout", options->shutdown_timeout_s, "seconds a drain waits for running requests")
      ->check(whole_number(0, 86400))
      ->capture_default_str();
  add_engine_options(*app, options->engine, ModelWord::kPositional);
  return {app, [options] { return serve(*options); }};
}

}  // namespace octavo
