// From a reason inside to the status and body that OpenAI's clients understand.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "octavo/result.h"
#include "server/http.h"
#include "server/json.h"

namespace octavo {

struct ContextNumbers {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t limit = 0;
};

struct ApiError {
  unsigned status = 500;
  std::string message;
  std::string type;
  std::string param;  // empty: null
  std::string code;
  std::optional<ContextNumbers> context;
  std::uint32_t retry_after_s = 1;  // told with a 429
};

[[nodiscard]] ApiError to_api_error(const Error& error);
/// What a request gets whose prompt and completion cannot fit into `limit` tokens, in OpenAI's words: gateways look for
/// "maximum context length is".
[[nodiscard]] ApiError context_overflow(std::uint64_t prompt_tokens, std::uint64_t max_tokens, std::uint64_t limit);

/// {"error": {"message", "type", "param", "code"}}
[[nodiscard]] Json error_body(const ApiError& error);
/// With Retry-After where trying again makes sense.
[[nodiscard]] HttpResponse error_response(const ApiError& error);

}  // namespace octavo
