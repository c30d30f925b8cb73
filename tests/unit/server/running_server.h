// A server over a FakeEngine on a free port, for as long as the object lives.
#pragma once
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "server/server.h"
#include "support/fake_engine.h"
#include "support/http_client.h"

namespace octavo {

using testing::ask;
using testing::Client;
using testing::Headers;
using testing::Reply;
using json = nlohmann::json;

constexpr const char* kChatTemplate =
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

class RunningServer {
 public:
  explicit RunningServer(FakeEngineConfig engine_config = {}, ServerConfig config = {})
      : engine(std::move(engine_config)) {
    spdlog::set_level(spdlog::level::off);
    config.port = 0;
    config.version = "1.2.3";
    auto listening = Server::listen(engine, config);
    EXPECT_TRUE(listening.ok());
    server = std::move(*listening);
    thread_ = std::thread([this] { server->run(); });
  }
  ~RunningServer() {
    server->stop();
    thread_.join();
  }

  [[nodiscard]] std::uint16_t port() const { return server->port(); }
  [[nodiscard]] Reply post(const std::string& path, const json& body, const Headers& headers = {}) const {
    return ask(port(), "POST", path, body.dump(), headers);
  }
  [[nodiscard]] Reply get(const std::string& path, const Headers& headers = {}) const {
    return ask(port(), "GET", path, {}, headers);
  }

  FakeEngine engine;
  std::unique_ptr<Server> server;

 private:
  std::thread thread_;
};

/// Within five seconds.
inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

inline std::string message_of(const Reply& reply) {
  return reply.json().value("/error/message"_json_pointer, std::string());
}
inline std::string code_of(const Reply& reply) { return reply.json().value("/error/code"_json_pointer, std::string()); }

}  // namespace octavo
