#include "server/router.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <spdlog/spdlog.h>

#include <array>

#include "server/errors.h"

namespace octavo {
namespace {

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with("/*")) return pattern == path;
  const std::string_view prefix = pattern.substr(0, pattern.size() - 1);
  return path.size() > prefix.size() && path.starts_with(prefix);
}

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;
Digest digest(std::string_view text) {
  Digest out{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

void answer(Exchange& exchange, ApiError error) { exchange.reply(error_response(error)); }

}  // namespace

bool same_secret(std::string_view a, std::string_view b) {
  const Digest left = digest(a), right = digest(b);
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

void Router::add(std::string method, std::string pattern, Access access, Handler handler) {
  routes_.push_back({std::move(method), std::move(pattern), access, std::move(handler)});
}

bool Router::has_key(const HttpRequest& request) const {
  if (api_keys_.empty()) return true;
  std::string_view given = request.authorization;
  if (given.starts_with("Bearer ")) {
    given.remove_prefix(7);
  } else {
    given = request.api_key;
  }
  bool found = false;
  for (const std::string& key : api_keys_) found |= same_secret(given, key);
  return found;
}

void Router::dispatch(const std::shared_ptr<Exchange>& exchange) const {
  const HttpRequest& request = exchange->request();
  const Route* route = nullptr;
  std::string allowed;
  for (const Route& candidate : routes_) {
    if (!matches(candidate.pattern, request.path)) continue;
    exchange->route = candidate.pattern;
    allowed += (allowed.empty() ? "" : ", ") + candidate.method;
    if (candidate.method == request.method) route = &candidate;
  }
  if (route == nullptr || route->access == Access::kKey) {
    if (!has_key(request)) {
      return answer(*exchange,
                    {401, "No valid API key was given. Send it as \"Authorization: Bearer KEY\" or \"x-api-key: KEY\".",
                     "authentication_error", "", "invalid_api_key", std::nullopt});
    }
  }
  if (allowed.empty()) {
    return answer(*exchange, {404, fmt::format("There is no {}. See docs/server.md for the routes.", request.path),
                              "invalid_request_error", "", "not_found", std::nullopt});
  }
  if (route == nullptr) {
    HttpResponse response =
        error_response({405, fmt::format("{} takes {}, not {}.", request.path, allowed, request.method),
                        "invalid_request_error", "", "method_not_allowed", std::nullopt});
    response.headers.emplace_back("Allow", allowed);
    return exchange->reply(std::move(response));
  }
  try {
    route->handler(exchange);
  } catch (const std::exception& caught) {
    spdlog::error("{} {}: {}", request.method, request.path, caught.what());
    answer(*exchange, to_api_error({ErrorCode::kInternal, "The server failed on this request; its log says why.", {}}));
  }
}

}  // namespace octavo
