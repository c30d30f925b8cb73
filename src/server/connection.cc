#include "server/connection.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/status.hpp>
#include <random>

#include "server/errors.h"

namespace octavo {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::chrono::seconds kLinger{2};  // a refused client may finish sending, so that it reads the answer
constexpr std::size_t kMaxRequestId = 128;

std::string new_request_id() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("req-{:016x}", random());
}

bool usable_request_id(std::string_view id) {
  const auto visible = [](char c) { return c > ' ' && c <= '~'; };
  return !id.empty() && id.size() <= kMaxRequestId && std::all_of(id.begin(), id.end(), visible);
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode_path(std::string_view target) {
  target = target.substr(0, target.find_first_of("?#"));
  std::string path;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool escape = target[i] == '%' && i + 2 < target.size();
    const int high = escape ? hex_value(target[i + 1]) : -1;
    const int low = escape ? hex_value(target[i + 2]) : -1;
    if (high < 0 || low < 0) {
      path += target[i];
    } else {
      path += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return path;
}

/// A timer that was set anew may still deliver the old expiry.
bool expired(const asio::steady_timer& timer, const error_code& cancelled) {
  return !cancelled && timer.expiry() <= asio::steady_timer::clock_type::now();
}

std::string chunk_of(std::string_view bytes) { return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes); }

}  // namespace

/// The exchange of a Connection. While one exists, Server::run() does not return: whoever holds it may still post().
class SocketExchange final : public Exchange, public std::enable_shared_from_this<SocketExchange> {
 public:
  SocketExchange(std::shared_ptr<Connection> connection, HttpRequest request)
      : work_(asio::make_work_guard(connection->socket_.get_executor())),
        connection_(std::move(connection)),
        request_(std::move(request)) {
    ++connection_->server_.exchanges;
  }
  ~SocketExchange() override { --connection_->server_.exchanges; }

  [[nodiscard]] const HttpRequest& request() const override { return request_; }

  void reply(HttpResponse response) override {
    if (!current() || connection_->answered_) return;
    connection_->send_header(response, false);
    connection_->complete_ = true;
  }

  void begin_events() override {
    if (!current() || connection_->answered_) return;
    connection_->send_header(
        {.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}},
        true);
    connection_->ping_later();
  }

  void send_event(std::string_view data) override {
    if (!current()) return;
    std::string event;
    event.reserve(data.size() + 8);
    event.append("data: ").append(data).append("\n\n");
    connection_->send_piece(event);
  }

  void end_events() override {
    if (!current()) return;
    send_event("[DONE]");
    if (connection_->chunked_) connection_->send("0\r\n\r\n");
    connection_->complete_ = true;
  }

  void on_gone(std::function<void()> gone) override { gone_ = std::move(gone); }

  void post(std::function<void()> work) override {
    asio::post(connection_->socket_.get_executor(), [self = shared_from_this(), work = std::move(work)] {
      try {
        work();
      } catch (const std::exception& caught) {
        spdlog::error("request {}: {}", self->request_.request_id, caught.what());
        self->fail();
      }
    });
  }

  void client_left() {
    if (const auto gone = std::exchange(gone_, {})) gone();
  }

 private:
  friend class Connection;

  [[nodiscard]] bool current() const { return connection_->exchange_.get() == this && !connection_->complete_; }

  void fail() {
    client_left();
    if (!current()) return;
    const ApiError error = to_api_error({ErrorCode::kInternal, "The server failed on this request.", {}});
    if (!connection_->answered_) return reply(error_response(error));
    send_event(to_text(error_body(error)));
    end_events();
  }

  asio::executor_work_guard<tcp::socket::executor_type> work_;  // first, so that it goes last
  std::shared_ptr<Connection> connection_;
  HttpRequest request_;
  std::function<void()> gone_;
};

Connection::Connection(tcp::socket socket, HttpServer& server)
    : socket_(std::move(socket)),
      server_(server),
      timer_(socket_.get_executor()),
      write_timer_(socket_.get_executor()) {}

void Connection::start() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    self->next_request();
    self->parse();
  });
}

void Connection::close_soon() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->gone(); });
}

// Reading --------------------------------------------------------------------------------------------------------

void Connection::next_request() {
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(static_cast<std::uint32_t>(server_.limits().max_header_bytes));
  parser_->body_limit(server_.limits().max_body_bytes);
  enter(Phase::kIdle);
}

void Connection::read() {
  if (reading_ || phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kAnswer && buffer_.size() >= server_.limits().max_pipelined_bytes) return;
  reading_ = true;
  socket_.async_read_some(asio::buffer(incoming_), [self = shared_from_this()](error_code failed, std::size_t bytes) {
    self->reading_ = false;
    self->on_read(failed, bytes);
  });
}

void Connection::on_read(error_code failed, std::size_t bytes) {
  if (phase_ == Phase::kClosed) return;
  if (failed) return gone();
  if (phase_ != Phase::kLinger) {  // there, what arrives is dropped
    buffer_.commit(asio::buffer_copy(buffer_.prepare(bytes), asio::buffer(incoming_)));
    parse();
  }
  read();
}

void Connection::parse() {
  while (buffer_.size() > 0 && phase_ < Phase::kAnswer) {
    if (phase_ == Phase::kIdle) enter(Phase::kHeader);
    error_code failed;
    buffer_.consume(parser_->put(buffer_.data(), failed));
    if (parser_->is_header_done() && phase_ == Phase::kHeader) {
      enter(Phase::kBody);
      if ((!failed || failed == http::error::need_more) && !parser_->is_done() &&
          boost::beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
        send("HTTP/1.1 100 Continue\r\n\r\n");
      }
    }
    if (failed == http::error::need_more) break;
    if (failed == http::error::body_limit) {
      return refuse(413,
                    fmt::format("The body is larger than the limit of {} bytes.", server_.limits().max_body_bytes));
    }
    if (failed == http::error::header_limit) {
      return refuse(431,
                    fmt::format("The header is larger than the limit of {} bytes.", server_.limits().max_header_bytes));
    }
    if (failed) return refuse(400, fmt::format("This is not an HTTP request: {}.", failed.message()));
    if (parser_->is_done()) start_exchange();
  }
  read();
}

void Connection::enter(Phase phase) {
  phase_ = phase;
  const HttpLimits& limits = server_.limits();
  std::chrono::milliseconds deadline{};
  switch (phase) {
    case Phase::kIdle: deadline = limits.idle_timeout; break;
    case Phase::kHeader: deadline = limits.header_timeout; break;
    case Phase::kBody: deadline = limits.body_timeout; break;
    case Phase::kLinger: deadline = kLinger; break;
    case Phase::kAnswer:
    case Phase::kClosed: timer_.cancel(); return;
  }
  timer_.expires_after(deadline);
  timer_.async_wait([self = shared_from_this(), phase](error_code cancelled) {
    if (expired(self->timer_, cancelled) && self->phase_ == phase) self->on_deadline();
  });
}

void Connection::on_deadline() {
  if (phase_ == Phase::kHeader || phase_ == Phase::kBody) {
    return refuse(408, "The request did not arrive completely in time.");
  }
  close();
}

void Connection::start_exchange() {
  auto message = parser_->release();
  keep_alive_ = message.keep_alive();
  chunked_ = message.version() >= 11;
  head_ = message.method() == http::verb::head;
  answered_ = complete_ = false;

  const std::string_view id = message["x-request-id"];
  const auto target = message.target();
  HttpRequest request{.method = head_ ? "GET" : std::string(message.method_string()),
                      .path = decode_path({target.data(), target.size()}),
                      .body = std::move(message.body()),
                      .request_id = usable_request_id(id) ? std::string(id) : new_request_id(),
                      .authorization = std::string(message[http::field::authorization]),
                      .api_key = std::string(message["x-api-key"])};
  enter(Phase::kAnswer);
  exchange_ = std::make_shared<SocketExchange>(shared_from_this(), std::move(request));
  server_.handle(exchange_);
}

void Connection::refuse(unsigned status, const std::string& message) {
  enter(Phase::kAnswer);
  buffer_.consume(buffer_.size());
  answered_ = complete_ = false;
  exchange_ = std::make_shared<SocketExchange>(shared_from_this(),
                                               HttpRequest{.method = "none", .request_id = new_request_id()});
  HttpResponse response =
      error_response({status, message, "invalid_request_error", "", "invalid_request", std::nullopt});
  response.close = true;
  exchange_->reply(std::move(response));
  read();
}

// Writing --------------------------------------------------------------------------------------------------------

void Connection::send_header(const HttpResponse& response, bool stream) {
  answered_ = true;
  keep_alive_ = keep_alive_ && !response.close && (chunked_ || !stream);
  const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
  std::string header =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nx-request-id: {}\r\nConnection: {}\r\n", response.status,
                  std::string_view(reason.data(), reason.size()), response.content_type,
                  exchange_->request().request_id, keep_alive_ ? "keep-alive" : "close");
  for (const auto& [name, value] : response.headers) header += fmt::format("{}: {}\r\n", name, value);
  if (!stream) {
    header += fmt::format("Content-Length: {}\r\n\r\n", response.body.size());
    if (!head_) header += response.body;
  } else {
    header += chunked_ ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n";
  }
  server_.observe(*exchange_, response.status);
  send(std::move(header));
}

void Connection::send_piece(std::string_view bytes) {
  if (out_.size() + sending_.size() - sent_ > server_.limits().max_unsent_bytes) {
    spdlog::warn("request {}: the client reads too slowly, its stream is aborted", exchange_->request().request_id);
    return gone();
  }
  send(chunked_ ? chunk_of(bytes) : std::string(bytes));
  ping_later();
}

void Connection::send(std::string bytes) {
  if (phase_ == Phase::kClosed) return;
  out_ += bytes;
  if (!writing_) write();
}

void Connection::write() {
  if (sent_ == sending_.size()) {
    sending_.clear();
    sent_ = 0;
    sending_.swap(out_);
  }
  writing_ = true;
  write_timer_.expires_after(server_.limits().write_timeout);
  write_timer_.async_wait([self = shared_from_this()](error_code cancelled) {
    if (expired(self->write_timer_, cancelled) && self->writing_) self->gone();
  });
  socket_.async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                           [self = shared_from_this()](error_code failed, std::size_t bytes) {
                             self->writing_ = false;
                             self->on_written(failed, bytes);
                           });
}

void Connection::on_written(error_code failed, std::size_t bytes) {
  if (phase_ == Phase::kClosed) return;
  if (failed) return gone();
  sent_ += bytes;
  if (sent_ < sending_.size() || !out_.empty()) return write();
  write_timer_.cancel();
  if (exchange_ && complete_) finish_answer();
}

void Connection::finish_answer() {
  exchange_->on_gone({});
  exchange_.reset();
  if (!keep_alive_) return linger();
  next_request();
  parse();
}

void Connection::linger() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  buffer_.consume(buffer_.size());
  enter(Phase::kLinger);
  read();
}

void Connection::ping_later() {
  timer_.expires_after(server_.limits().ping_interval);
  timer_.async_wait([self = shared_from_this()](error_code cancelled) {
    if (!expired(self->timer_, cancelled) || self->phase_ != Phase::kAnswer || self->complete_) return;
    self->send_piece(": ping\n\n");
  });
}

// The end --------------------------------------------------------------------------------------------------------

void Connection::gone() {
  const auto exchange = std::exchange(exchange_, nullptr);
  if (exchange) exchange->client_left();
  close();
}

void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  enter(Phase::kClosed);
  write_timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  server_.forget(this);
}

}  // namespace octavo
