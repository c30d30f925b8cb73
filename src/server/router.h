// Which handler answers which method and path; who may ask.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "server/http.h"

namespace octavo {

/// Compares in constant time; the caller's key and ours need not be equally long.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b);

class Router {
 public:
  enum class Access : unsigned char { kOpen, kKey };

  /// With no keys every route is open.
  explicit Router(std::vector<std::string> api_keys) : api_keys_(std::move(api_keys)) {}

  /// A pattern that ends in "/*" matches every longer path.
  void add(std::string method, std::string pattern, Access access, Handler handler);
  /// Answers 404, 405 and 401 itself; a handler that throws becomes a 500.
  void dispatch(const std::shared_ptr<Exchange>& exchange) const;

 private:
  struct Route {
    std::string method, pattern;
    Access access;
    Handler handler;
  };
  [[nodiscard]] bool has_key(const HttpRequest& request) const;

  std::vector<std::string> api_keys_;
  std::vector<Route> routes_;
};

}  // namespace octavo
