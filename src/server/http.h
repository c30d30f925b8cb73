// One HTTP request and the ways to answer it, free of sockets.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo {

struct HttpRequest {
  std::string method{};         // "GET", "POST", ...; HEAD is told as GET
  std::string path{};           // percent-decoded, without the query
  std::string body{};           // at most HttpLimits::max_body_bytes
  std::string request_id{};     // the client's x-request-id, or one of ours
  std::string authorization{};  // header fields, empty if absent
  std::string api_key{};
};

struct HttpResponse {
  unsigned status = 200;
  std::string body{};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers{};
  bool close = false;  // the connection, after this answer
};

/// One request on its way to one answer: either reply(), or begin_events(), send_event()*, end_events().
/// Once the client is gone every call does nothing.
///
/// Threads: all on the connection's strand (where the handler was called), except post().
class Exchange {
 public:
  virtual ~Exchange() = default;

  [[nodiscard]] virtual const HttpRequest& request() const = 0;
  virtual void reply(HttpResponse response) = 0;
  virtual void begin_events() = 0;                       // text/event-stream
  virtual void send_event(std::string_view data) = 0;    // "data: ...", flushed
  virtual void end_events() = 0;                         // "data: [DONE]"
  virtual void on_gone(std::function<void()> gone) = 0;  // called if the client leaves before the answer is complete
  virtual void post(std::function<void()> work) = 0;     // runs `work` on the strand

  std::string route = "none";  // the pattern that matched, for metrics
};

using Handler = std::function<void(const std::shared_ptr<Exchange>&)>;

}  // namespace octavo
