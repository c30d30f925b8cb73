#include "server/errors.h"

#include <fmt/format.h>

namespace octavo {
namespace {

struct Shape {
  unsigned status;
  const char* type;
  const char* code;
};

Shape shape_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument: return {400, "invalid_request_error", "invalid_value"};
    case ErrorCode::kContextLength: return {400, "invalid_request_error", "context_length_exceeded"};
    case ErrorCode::kUnsupported: return {400, "invalid_request_error", "unsupported"};
    case ErrorCode::kNotFound:
      return {404, "invalid_request_error", error.field == "model" ? "model_not_found" : "not_found"};
    case ErrorCode::kBusy: return {409, "conflict_error", "busy"};
    case ErrorCode::kDeadline: return {504, "timeout_error", "deadline_exceeded"};
    case ErrorCode::kExhausted: return {429, "rate_limit_error", "queue_full"};
    case ErrorCode::kUnavailable:
    case ErrorCode::kAborted: return {503, "service_unavailable_error", "unavailable"};
    case ErrorCode::kCorrupt:
    case ErrorCode::kIo:
    case ErrorCode::kInternal: break;
  }
  return {500, "server_error", "internal_error"};
}

}  // namespace

ApiError to_api_error(const Error& error) {
  const Shape shape = shape_of(error);
  return {shape.status, error.message, shape.type, error.field, shape.code, std::nullopt};
}

ApiError context_overflow(std::uint64_t prompt_tokens, std::uint64_t max_tokens, std::uint64_t limit) {
  const std::string asked =
      prompt_tokens >= limit
          ? fmt::format("your prompt has {} tokens, which leaves no room for a completion. Please reduce its length.",
                        prompt_tokens)
          : fmt::format(
                "you requested {} tokens ({} in the prompt, {} in the completion). Please reduce the length of "
                "the prompt or max_tokens.",
                prompt_tokens + max_tokens, prompt_tokens, max_tokens);
  ApiError error = to_api_error({ErrorCode::kContextLength, {}, prompt_tokens >= limit ? "prompt" : "max_tokens"});
  error.message = fmt::format("This model's maximum context length is {} tokens. However, {}", limit, asked);
  error.context = {prompt_tokens, limit};
  return error;
}

Json error_body(const ApiError& error) {
  Json body{{"message", error.message},
            {"type", error.type},
            {"param", error.param.empty() ? Json(nullptr) : Json(error.param)},
            {"code", error.code}};
  if (error.context) {
    body["n_prompt_tokens"] = error.context->prompt_tokens;
    body["n_ctx"] = error.context->limit;
  }
  return Json{{"error", std::move(body)}};
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = to_text(error_body(error))};
  if (error.status == 429) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after_s));
  if (error.status == 503) {
    response.headers.emplace_back("Retry-After", "5");
    response.close = true;
  }
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace octavo
