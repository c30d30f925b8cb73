// A streamed completion as it comes over the wire: server-sent events, each with a time.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

/// What a stream said. Times are milliseconds since the request was sent.
struct StreamedAnswer {
  std::optional<double> first_ms;   // the first event with a choice
  double last_ms = 0;               // the last one
  std::vector<double> gaps_ms;      // between two of them
  std::uint64_t prompt_tokens = 0;  // as the server counts; 0: it does not tell
  std::uint64_t output_tokens = 0;  // as the server counts, else events with a choice
  std::string error;                // empty: a whole answer
};

class CompletionStream {
 public:
  /// The next bytes of the body, as they arrived. Any bytes, cut anywhere.
  void add(std::string_view bytes, double now_ms);
  /// The body has ended.
  [[nodiscard]] StreamedAnswer finish();

 private:
  void take_line(std::string_view line, double now_ms);
  void take_event(std::string_view data, double now_ms);
  void fail(std::string why);

  std::string line_;  // not ended yet
  StreamedAnswer answer_;
  std::uint64_t events_ = 0;
  bool done_ = false, finished_ = false;  // [DONE]; a finish_reason
};

/// The message of an OpenAI error body, else the start of the body.
[[nodiscard]] std::string error_message(std::string_view body);

}  // namespace octavo
