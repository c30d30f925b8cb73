// One client's socket: reads requests one after another, writes answers, notices that the client has left.
//
// A read is always pending, also while a request is at work: that is how a leaving client is seen at once. What arrives
// meanwhile (pipelined requests) waits in the buffer; when the buffer is full the socket waits.
// A client that closes its sending side counts as gone.
//
// Threads: everything runs on the socket's strand, except close_soon().
#pragma once
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>

#include "server/http.h"
#include "server/http_server.h"

namespace octavo {

class SocketExchange;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, HttpServer& server);

  void start();
  /// From any thread.
  void close_soon();

 private:
  friend class SocketExchange;
  enum class Phase : unsigned char { kIdle, kHeader, kBody, kAnswer, kLinger, kClosed };
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  // Reading.
  void next_request();
  void read();
  void on_read(boost::system::error_code failed, std::size_t bytes);
  void parse();
  void enter(Phase phase);
  void on_deadline();
  void start_exchange();
  void refuse(unsigned status, const std::string& message);

  // Writing, on behalf of the exchange.
  void send_header(const HttpResponse& response, bool stream);
  void send_piece(std::string_view bytes);  // of a stream
  void send(std::string bytes);
  void write();
  void on_written(boost::system::error_code failed, std::size_t bytes);
  void finish_answer();
  void linger();
  void ping_later();

  void gone();
  void close();

  boost::asio::ip::tcp::socket socket_;
  HttpServer& server_;
  boost::asio::steady_timer timer_;        // of the phase: read deadlines, pings
  boost::asio::steady_timer write_timer_;  // of the pending write
  std::array<char, 16 << 10> incoming_;    // of the pending read
  boost::beast::flat_buffer buffer_;       // read, not yet parsed
  std::optional<Parser> parser_;
  Phase phase_ = Phase::kIdle;
  bool reading_ = false;

  std::shared_ptr<SocketExchange> exchange_;  // the request at work, until its answer is written
  std::string out_, sending_;                 // what waits, and what the pending write takes
  std::size_t sent_ = 0;                      // of sending_
  bool writing_ = false;
  bool keep_alive_ = true, head_ = false, chunked_ = true;  // of the request at work
  bool answered_ = false, complete_ = false;                // header sent; all of the answer handed to send()
};

}  // namespace octavo
