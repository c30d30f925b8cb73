#include "server/server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>

#include "server/http_server.h"
#include "server/router.h"
#include "server/service.h"

namespace octavo {
namespace {

constexpr std::chrono::seconds kFlush{5};  // for the last answers of a drain
constexpr std::chrono::milliseconds kPoll{5};

/// The line operators look for: rates since the last one.
void log_throughput(const EngineStats& now, const EngineStats& before, std::chrono::seconds interval) {
  const double seconds = static_cast<double>(interval.count());
  const auto rate = [&](std::uint64_t a, std::uint64_t b) { return static_cast<double>(a - b) / seconds; };
  const auto percent = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  spdlog::info(
      "prompt {:.1f} tok/s, generation {:.1f} tok/s, running {}, waiting {}, KV {:.1f} %, prefix hits {:.1f} %",
      rate(now.prompt_tokens, before.prompt_tokens), rate(now.generated_tokens, before.generated_tokens), now.running,
      now.waiting, percent(now.blocks_used, now.blocks_total), percent(now.prefix_hits, now.prefix_queries));
}

}  // namespace

struct Server::State {
  State(Engine& engine, const ServerConfig& given)
      : config(given),
        service(engine, given),
        router(given.api_keys),
        log_timer(io),
        http(
            io, given.limits, [this](const std::shared_ptr<Exchange>& exchange) { router.dispatch(exchange); },
            [this](const Exchange& exchange, unsigned status) {
              service.metrics.answer(exchange.route, exchange.request().method, status);
            }) {
    add_routes(router, service);
  }

  void log_later() {
    if (config.log_interval.count() == 0) return;
    log_timer.expires_after(config.log_interval);
    log_timer.async_wait([this](boost::system::error_code cancelled) {
      if (cancelled || stopping) return;
      const EngineStats now = service.engine.stats();
      if (now.steps != logged.steps) log_throughput(now, logged, config.log_interval);
      logged = now;
      log_later();
    });
  }

  ServerConfig config;
  Service service;
  Router router;
  boost::asio::io_context io;
  boost::asio::steady_timer log_timer;
  EngineStats logged;
  std::atomic<bool> stopping{false};
  HttpServer http;
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::listen(Engine& engine, ServerConfig config) {
  auto state = std::make_unique<State>(engine, config);
  OCTAVO_CHECK_OK(state->http.open(config.host, config.port));
  if (!state->http.loopback() && config.api_keys.empty() && !config.no_auth) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--host {} lets other machines in. Give an --api-key they must know, or say --no-auth if "
                             "everyone may use this server.",
                             config.host),
                 "--host"};
  }
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

std::uint16_t Server::port() const { return state_->http.port(); }

void Server::run() {
  state_->http.accept();
  state_->log_later();
  std::vector<std::thread> threads;
  for (std::uint32_t i = 1; i < std::max(state_->config.io_threads, 1U); ++i)
    threads.emplace_back([this] { state_->io.run(); });
  state_->io.run();
  for (std::thread& thread : threads) thread.join();
}

void Server::stop() {
  state_->stopping = true;
  state_->http.close();
  boost::asio::post(state_->io, [this] { state_->log_timer.cancel(); });
}

bool Server::drain(std::chrono::milliseconds timeout) {
  state_->service.draining = true;
  const bool finished = state_->service.engine.drain(timeout);
  const auto give_up = std::chrono::steady_clock::now() + kFlush;
  while (state_->http.exchanges > 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(kPoll);
  return finished;
}

}  // namespace octavo
