// What every endpoint needs: the engine, the names it goes by, the metrics.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "octavo/engine.h"
#include "server/errors.h"
#include "server/finish_rate.h"
#include "server/http.h"
#include "server/json.h"
#include "server/metrics.h"
#include "server/openai_request.h"
#include "server/server.h"

namespace octavo {

class Router;

struct Service {
  Service(Engine& used_engine, const ServerConfig& config);

  Engine& engine;
  std::vector<std::string> models;  // names this model answers to; the first is told
  std::string version;
  std::int64_t started;  // unix seconds
  Metrics metrics;
  FinishRate finish_rate;
  std::atomic<bool> draining{false};
  std::atomic<std::uint32_t> at_work{0};  // generations
};

void add_routes(Router& router, Service& service);

// The endpoints. All run on the exchange's strand.
void serve_completions(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_chat(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_tokenize(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_detokenize(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_apply_template(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_tokenizer_info(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_models(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_model(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_health(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_ready(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_load(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_version(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_metrics(Service& service, const std::shared_ptr<Exchange>& exchange);
void serve_reset_prefix_cache(Service& service, const std::shared_ptr<Exchange>& exchange);

// Shared by them.
void reply_json(Exchange& exchange, const Json& body);
void reply_error(Exchange& exchange, const Error& error);
/// An unknown model is an error; an empty name means the only one there is.
[[nodiscard]] Result<> check_model(const Service& service, const std::string& name);
[[nodiscard]] Result<const Tokenizer*> tokenizer_of(const Service& service);
/// A conversation as the model's template writes it.
[[nodiscard]] Result<std::string> render_chat(const Service& service, const ChatCall& call);
/// Text to ids, ids as they are.
[[nodiscard]] Result<std::vector<TokenId>> prompt_ids(const Service& service, const PromptInput& prompt,
                                                      bool add_special);

}  // namespace octavo
