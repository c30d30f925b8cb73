// The OpenAI-compatible HTTP server over one Engine.
//
//   auto server = Server::listen(engine, {.port = 8080});
//   (*server)->run();   // until stop()
//
// Threads: run() is called once and blocks; port(), drain() and stop() may be called from any thread but the server's
// own. The engine must outlive the server.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "octavo/engine.h"
#include "octavo/result.h"
#include "server/limits.h"

namespace octavo {

struct ServerConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;               // 0: the system picks a free one, see Server::port()
  std::vector<std::string> api_keys;       // none: no key is asked for
  bool no_auth = false;                    // allows binding beyond loopback without a key
  std::vector<std::string> served_models;  // names of the model, the first is told; none: the file's stem
  std::string version;                     // what GET /version says
  std::uint32_t io_threads = 4;
  std::chrono::seconds log_interval{10};  // of the throughput line while there is work; 0: never
  HttpLimits limits;
};

class Server {
 public:
  /// Binds and listens; nothing is answered before run(). Refuses an address beyond loopback without key or no_auth.
  [[nodiscard]] static Result<std::unique_ptr<Server>> listen(Engine& engine, ServerConfig config);
  ~Server();

  [[nodiscard]] std::uint16_t port() const;
  /// Serves until stop(); then closes every connection, aborts what they waited for and returns.
  void run();
  void stop();
  /// Answers new generations with 503, waits for the running ones until `timeout`, aborts the rest and lets the answers
  /// reach their clients. True: all finished. drain(0) from a second thread cuts a longer one short.
  bool drain(std::chrono::milliseconds timeout);

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo
