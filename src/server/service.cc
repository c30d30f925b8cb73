#include "server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "server/router.h"

namespace octavo {
namespace {

/// The told names, then the file's stem, always accepted.
std::vector<std::string> model_names(const ModelInfo& model, std::vector<std::string> names) {
  const std::filesystem::path path(model.path);
  std::string stem = (path.has_filename() ? path : path.parent_path()).stem().string();
  if (stem.empty()) stem = model.name.empty() ? "model" : model.name;
  names.push_back(std::move(stem));
  return names;
}

Json model_card(const Service& service, const std::string& name) {
  const EngineReport& report = service.engine.report();
  return {{"id", name},
          {"object", "model"},
          {"created", service.started},
          {"owned_by", "octavo"},
          {"root", service.models.back()},
          {"parent", nullptr},
          {"max_model_len", report.max_model_len},
          {"meta",
           {{"n_ctx_train", report.model.context_length},
            {"n_params", report.model.parameters},
            {"n_vocab", report.model.vocab_size},
            {"n_embd", report.model.width},
            {"size", report.model.weights_bytes}}}};
}

}  // namespace

Service::Service(Engine& used_engine, const ServerConfig& config)
    : engine(used_engine),
      models(model_names(used_engine.report().model, config.served_models)),
      version(config.version),
      started(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
                  .count()),
      metrics(models.front(), used_engine.report()) {}

void add_routes(Router& router, Service& service) {
  using Serve = void (*)(Service&, const std::shared_ptr<Exchange>&);
  const auto add = [&](const char* method, const char* pattern, Serve serve,
                       Router::Access access = Router::Access::kKey) {
    router.add(method, pattern, access,
               [&service, serve](const std::shared_ptr<Exchange>& exchange) { serve(service, exchange); });
  };
  add("POST", "/v1/completions", serve_completions);
  add("POST", "/v1/chat/completions", serve_chat);
  add("GET", "/v1/models", serve_models);
  add("GET", "/v1/models/*", serve_model);
  add("POST", "/tokenize", serve_tokenize);
  add("POST", "/detokenize", serve_detokenize);
  add("POST", "/apply-template", serve_apply_template);
  add("GET", "/tokenizer_info", serve_tokenizer_info);
  add("POST", "/reset_prefix_cache", serve_reset_prefix_cache);
  add("GET", "/metrics", serve_metrics);
  add("GET", "/load", serve_load);
  add("GET", "/version", serve_version);
  add("GET", "/health", serve_health, Router::Access::kOpen);
  add("GET", "/ping", serve_health, Router::Access::kOpen);
  add("GET", "/ready", serve_ready, Router::Access::kOpen);
}

void reply_json(Exchange& exchange, const Json& body) { exchange.reply({.body = to_text(body)}); }
void reply_error(Exchange& exchange, const Error& error) { exchange.reply(error_response(to_api_error(error))); }

Result<> check_model(const Service& service, const std::string& name) {
  const auto& names = service.models;
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return Ok{};
  return Error{ErrorCode::kNotFound,
               fmt::format("The model {} does not exist here. This server has {}.", to_text(Json(name)), names.front()),
               "model"};
}

Result<const Tokenizer*> tokenizer_of(const Service& service) {
  if (const Tokenizer* tokenizer = service.engine.tokenizer()) return tokenizer;
  return Error{ErrorCode::kUnsupported, "This model has no tokenizer. Send token ids to /v1/completions as the prompt.",
               "prompt"};
}

Result<std::vector<TokenId>> prompt_ids(const Service& service, const PromptInput& prompt, bool add_special) {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) return *ids;
  OCTAVO_TRY(const Tokenizer* tokenizer, tokenizer_of(service));
  const std::string& text = std::get<std::string>(prompt);
  // Encoding megabytes takes seconds: what cannot fit by its length alone is refused unread.
  const std::size_t at_least = text.size() / tokenizer->most_bytes_per_token(),
                    limit = service.engine.report().max_model_len;
  if (at_least > limit) {
    return Error{
        ErrorCode::kContextLength,
        fmt::format("This model's maximum context length is {} tokens. However, your prompt has {} bytes, which "
                    "are at least {} tokens. Please reduce its length.",
                    limit, text.size(), at_least),
        "prompt"};
  }
  return tokenizer->encode(text, {.add_special = add_special, .parse_special = true});
}

void serve_models(Service& service, const std::shared_ptr<Exchange>& exchange) {
  Json cards = Json::array();
  const std::size_t told = std::max<std::size_t>(service.models.size() - 1, 1);
  for (std::size_t i = 0; i < told; ++i) cards.push_back(model_card(service, service.models[i]));
  reply_json(*exchange, {{"object", "list"}, {"data", std::move(cards)}});
}

void serve_model(Service& service, const std::shared_ptr<Exchange>& exchange) {
  const std::string name = exchange->request().path.substr(std::string_view("/v1/models/").size());
  if (const auto known = check_model(service, name); !known) return reply_error(*exchange, known.error());
  reply_json(*exchange, model_card(service, name));
}

void serve_health(Service& service, const std::shared_ptr<Exchange>& exchange) {
  if (const auto health = service.engine.health(); !health) return reply_error(*exchange, health.error());
  reply_json(*exchange, {{"status", "ok"}});
}

void serve_ready(Service& service, const std::shared_ptr<Exchange>& exchange) {
  if (!service.draining) return serve_health(service, exchange);
  reply_error(*exchange, {ErrorCode::kUnavailable, "The server is shutting down.", {}});
}

void serve_load(Service& service, const std::shared_ptr<Exchange>& exchange) {
  reply_json(*exchange, {{"server_load", service.at_work.load()}});
}

void serve_version(Service& service, const std::shared_ptr<Exchange>& exchange) {
  reply_json(*exchange, {{"version", service.version}});
}

void serve_reset_prefix_cache(Service& service, const std::shared_ptr<Exchange>& exchange) {
  if (const auto done = service.engine.reset_prefix_cache(); !done) return reply_error(*exchange, done.error());
  reply_json(*exchange, {{"status", "ok"}});
}

void serve_metrics(Service& service, const std::shared_ptr<Exchange>& exchange) {
  exchange->reply({.body = service.metrics.text(service.engine.stats(), service.engine.memory()),
                   .content_type = "text/plain; version=0.0.4; charset=utf-8"});
}

}  // namespace octavo
