#include "server/http_server.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

#include "server/connection.h"
#include "server/errors.h"

namespace octavo {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr int kBacklog = 4096;
constexpr std::chrono::milliseconds kAcceptRetry{100};  // when the system has no file descriptor left

Error cannot_listen(const std::string& host, std::uint16_t port, const boost::system::error_code& reason) {
  const std::string place = fmt::format("port {} on {}", port, host);
  if (reason == asio::error::address_in_use) {
    return {ErrorCode::kIo,
            fmt::format("Cannot listen: {} is in use by another program. Stop it, or choose another port with --port "
                        "(--port 0 takes a free one).",
                        place),
            "--port"};
  }
  return {ErrorCode::kIo, fmt::format("Cannot listen on {}: {}.", place, reason.message()), "--host"};
}

}  // namespace

HttpServer::HttpServer(asio::io_context& io, HttpLimits limits, Handler handler, AnswerObserver observer)
    : limits_(limits),
      handler_(std::move(handler)),
      observer_(std::move(observer)),
      io_(io),
      acceptor_(asio::make_strand(io)),
      retry_(acceptor_.get_executor()) {}

Result<> HttpServer::open(const std::string& host, std::uint16_t port) {
  boost::system::error_code failed;
  tcp::resolver resolver(acceptor_.get_executor());
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, failed);
  if (failed || found.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--host {} is not an address of this machine ({}). Use 127.0.0.1, or 0.0.0.0 for all.",
                             host, failed.message()),
                 "--host"};
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), failed);
  if (!failed) acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor_.bind(endpoint, failed);
  if (!failed) acceptor_.listen(kBacklog, failed);
  if (failed) return cannot_listen(host, port, failed);
  port_ = acceptor_.local_endpoint().port();
  loopback_ = endpoint.address().is_loopback();
  return Ok{};
}

void HttpServer::accept() {
  acceptor_.async_accept(asio::make_strand(io_), [this](boost::system::error_code failed, tcp::socket socket) {
    if (failed == asio::error::operation_aborted || !acceptor_.is_open()) return;
    if (!failed) {
      admit(std::move(socket));
      return accept();
    }
    retry_.expires_after(kAcceptRetry);
    retry_.async_wait([this](boost::system::error_code cancelled) {
      if (!cancelled) accept();
    });
  });
}

void HttpServer::admit(tcp::socket socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  std::shared_ptr<Connection> connection;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if (connections_.size() < limits_.max_connections) {
      connection = std::make_shared<Connection>(std::move(socket), *this);
      connections_.emplace(connection.get(), connection);
    }
  }
  if (connection) return connection->start();

  // Full. What fits into the empty socket buffer is sent at once, nobody waits for this client.
  const std::string body = to_text(error_body(
      to_api_error({ErrorCode::kUnavailable,
                    fmt::format("All {} connections are in use. Try again in a few seconds.", limits_.max_connections),
                    {}})));
  socket.non_blocking(true, ignored);
  asio::write(socket,
              asio::buffer(fmt::format("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
                                       "Retry-After: 5\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
                                       body.size(), body)),
              ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

void HttpServer::forget(const Connection* connection) {
  const std::lock_guard lock(mutex_);
  connections_.erase(connection);
}

void HttpServer::close() {
  asio::post(acceptor_.get_executor(), [this] {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  });
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& [key, connection] : connections_) {
    if (const auto alive = connection.lock()) alive->close_soon();
  }
}

}  // namespace octavo
