// Listens, accepts and owns the connections.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "octavo/result.h"
#include "server/http.h"
#include "server/limits.h"

namespace octavo {

class Connection;

/// Called once per answer, with its status.
using AnswerObserver = std::function<void(const Exchange& exchange, unsigned status)>;

/// Threads: open() before the io threads start; the rest from any thread.
class HttpServer {
 public:
  HttpServer(boost::asio::io_context& io, HttpLimits limits, Handler handler, AnswerObserver observer);

  Result<> open(const std::string& host, std::uint16_t port);
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] bool loopback() const { return loopback_; }
  void accept();
  /// Closes the listening socket and every connection; whoever waits for an answer is told that the client is gone.
  void close();

  // For connections.
  [[nodiscard]] const HttpLimits& limits() const { return limits_; }
  void handle(const std::shared_ptr<Exchange>& exchange) const { handler_(exchange); }
  void observe(const Exchange& exchange, unsigned status) const { observer_(exchange, status); }
  void forget(const Connection* connection);
  std::atomic<std::uint32_t> exchanges{0};  // requests whose answer is not yet written

 private:
  void admit(boost::asio::ip::tcp::socket socket);

  HttpLimits limits_;
  Handler handler_;
  AnswerObserver observer_;
  boost::asio::io_context& io_;
  boost::asio::ip::tcp::acceptor acceptor_;  // on a strand of its own

  boost::asio::steady_timer retry_;
  std::mutex mutex_;
  std::unordered_map<const Connection*, std::weak_ptr<Connection>> connections_;
  bool closed_ = false;
  std::uint16_t port_ = 0;
  bool loopback_ = true;
};

}  // namespace octavo
