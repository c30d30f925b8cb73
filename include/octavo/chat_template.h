// A chat template: the Jinja subset that real templates use, in the environment Hugging Face renders them in
// (trim_blocks, lstrip_blocks, loop controls, tojson without HTML escapes). Bounded in steps, depth and output.
//
// Threads: immutable after parse; render may be called from any thread.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "octavo/result.h"

namespace octavo {

class ChatTemplate {
 public:
  [[nodiscard]] static Result<ChatTemplate> parse(std::string_view source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// `context_json`: an object with the template's variables (messages, tools, add_generation_prompt, bos_token, ...);
  /// key order is kept. `now` is what strftime_now sees (local civil time). raise_exception and run-time errors come
  /// back as kInvalidArgument with the template's own message.
  [[nodiscard]] Result<std::string> render(std::string_view context_json, std::chrono::local_seconds now) const;
  [[nodiscard]] const std::string& source() const;

 private:
  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// Wall time as local civil seconds: what a server passes as `now`.
[[nodiscard]] std::chrono::local_seconds local_now();
/// "2026-01-15T12:34:56" to the same, for scripts and tests.
[[nodiscard]] Result<std::chrono::local_seconds> parse_local_time(std::string_view iso);

}  // namespace octavo
