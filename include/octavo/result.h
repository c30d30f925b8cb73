// A value or a reason. Every edge that sees foreign input returns one; nothing there throws or aborts.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace octavo {

enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  // a flag, field or value is wrong: HTTP 400
  kContextLength,    // the prompt or prompt + max_tokens cannot fit: HTTP 400 context_length_exceeded
  kNotFound,         // model, file or route: HTTP 404
  kUnsupported,      // well-formed, but not something this build serves
  kCorrupt,          // a file's bytes contradict its format; the message has file, offset and reason
  kExhausted,        // queue full, memory: HTTP 429, retry later
  kUnavailable,      // draining or loading: HTTP 503
  kBusy,             // not while others use it: HTTP 409
  kDeadline,         // the request's own deadline has passed: HTTP 504
  kAborted,          // the client asked for it
  kIo,               // the operating system said no
  kInternal,         // our own mistake, told and survived
};

/// `message` is one sentence for a person: what, which value, which limit, what to do.
/// `field` names the flag, JSON field or metadata key at fault, if one is.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string field;
};

struct [[nodiscard]] Ok {};

/// Result<T> holds a T or an Error. Result<> is success without a value.
template <class T = Ok>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace octavo

#define OCTAVO_CONCAT_INNER(a, b) a##b
#define OCTAVO_CONCAT(a, b) OCTAVO_CONCAT_INNER(a, b)
/// OCTAVO_TRY(auto file, open(path)); returns the error from the enclosing function, or goes on with the value.
#define OCTAVO_TRY(declaration, expression)                         \
  auto OCTAVO_CONCAT(octavo_try_, __LINE__) = (expression);         \
  if (!OCTAVO_CONCAT(octavo_try_, __LINE__)) {                      \
    return std::move(OCTAVO_CONCAT(octavo_try_, __LINE__)).error(); \
  }                                                                 \
  declaration = std::move(OCTAVO_CONCAT(octavo_try_, __LINE__)).value()
/// OCTAVO_CHECK_OK(step()); the same for a Result whose value is not wanted.
#define OCTAVO_CHECK_OK(expression) \
  if (auto octavo_check = (expression); !octavo_check) return std::move(octavo_check).error()
