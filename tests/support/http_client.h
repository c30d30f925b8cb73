// A blocking HTTP client for tests, with sockets bare enough to misbehave.
#pragma once
#include <sys/socket.h>
#include <sys/time.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace octavo::testing {

struct Reply {
  unsigned status = 0;  // 0: no answer
  std::string body;
  boost::beast::http::fields fields;

  [[nodiscard]] std::string field(const char* name) const { return std::string(fields[name]); }
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
  /// What the "data: " lines of an event stream held.
  [[nodiscard]] std::vector<std::string> events() const {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t end = body.find("\n\n", at);
      const std::string event = body.substr(at, end - at);
      if (event.starts_with("data: ")) out.push_back(event.substr(6));
      at = end == std::string::npos ? body.size() : end + 2;
    }
    return out;
  }
};

using Headers = std::vector<std::pair<std::string, std::string>>;

class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(io_) {
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
    const timeval patience{10, 0};  // a test fails, it does not hang
    setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  void send(std::string_view bytes) {
    boost::system::error_code ignored;  // a server may refuse before it has read everything
    boost::asio::write(socket_, boost::asio::buffer(bytes), ignored);
  }

  void send_request(const std::string& method, const std::string& path, const std::string& body = {},
                    const Headers& headers = {}) {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: test\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    send(text + "\r\n" + body);
  }

  Reply read(bool head = false) {
    namespace http = boost::beast::http;
    http::response_parser<http::string_body> parser;
    parser.body_limit(std::uint64_t{1} << 30);
    parser.skip(head);
    boost::system::error_code failed;
    http::read(socket_, buffer_, parser, failed);
    if (failed && !parser.is_header_done()) return {};
    return {parser.get().result_int(), parser.get().body(), parser.get()};
  }

  /// Whatever is there next; empty: closed.
  std::string read_some() {
    std::string bytes(4096, '\0');
    boost::system::error_code failed;
    bytes.resize(socket_.read_some(boost::asio::buffer(bytes), failed));
    return bytes;
  }

  void close() { socket_.close(); }
  boost::asio::ip::tcp::socket& socket() { return socket_; }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
};

inline Reply ask(std::uint16_t port, const std::string& method, const std::string& path, const std::string& body = {},
                 const Headers& headers = {}) {
  Client client(port);
  client.send_request(method, path, body, headers);
  return client.read(method == "HEAD");
}

}  // namespace octavo::testing
