// One request while it is served: its choices' text on the way out, and the events its sink gets.
//
// Threads: the engine thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/sampling_table.h"
#include "octavo/request.h"
#include "octavo/tokenizer.h"
#include "sample/stop.h"
#include "sched/sequence.h"

namespace octavo {

class ActiveRequest {
 public:
  /// `tokenizer` may be nullptr: then events carry tokens and no text.
  ActiveRequest(RequestId id, std::shared_ptr<const Request> request, Sink sink, const Tokenizer* tokenizer,
                Micros arrival);

  [[nodiscard]] RequestId id() const { return id_; }
  [[nodiscard]] const Request& request() const { return *request_; }
  [[nodiscard]] const std::shared_ptr<const Request>& shared_request() const { return request_; }
  [[nodiscard]] std::uint32_t num_choices() const { return static_cast<std::uint32_t>(choices_.size()); }
  [[nodiscard]] bool done() const { return open_choices_ == 0; }

  /// It runs for the first time.
  void scheduled(std::uint32_t choice, Micros now, std::uint32_t cached_tokens);
  [[nodiscard]] bool has_token(std::uint32_t choice) const { return choices_[choice].usage.completion_tokens > 0; }
  /// A sampled token. True: a stop string was found; the caller ends the sequence, and finish() follows.
  [[nodiscard]] bool token(std::uint32_t choice, TokenId token, bool ends, SequenceSampling& sampling, Micros now);
  /// The choice is over; what its text still held back goes out. `failure`: told with Finish::kError.
  void finish(std::uint32_t choice, Finish why, const Error& failure, const Sequence* sequence,
              SequenceSampling* sampling);
  /// The whole request is over before any sequence existed.
  void refuse(const Error& error);

 private:
  struct Choice {
    std::unique_ptr<Detokenizer> detokenizer;
    StopMatcher stop;
    Usage usage;
    Timings timings;
    bool open = true;
    std::optional<TokenId> stop_token;
  };

  [[nodiscard]] OutputEvent event(std::uint32_t choice);
  void close(std::uint32_t choice, OutputEvent&& event);

  RequestId id_;
  std::shared_ptr<const Request> request_;
  Sink sink_;
  std::vector<Choice> choices_;
  std::uint32_t open_choices_ = 0;
};

}  // namespace octavo
