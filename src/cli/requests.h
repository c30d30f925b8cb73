// Running requests from the command's own thread: events come through a queue, so that slow output never holds up a
// step of the engine.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cli/jsonl.h"
#include "octavo/engine.h"
#include "octavo/request.h"

namespace octavo {

/// Carries events from the engine's thread to one reader. The sinks may outlive the queue.
class EventQueue {
 public:
  struct Item {
    std::size_t request = 0;  // as given to sink()
    OutputEvent event;
  };
  EventQueue();
  [[nodiscard]] Sink sink(std::size_t request) const;
  /// The next event; none if `patience` ran out first.
  [[nodiscard]] std::optional<Item> pop(std::chrono::milliseconds patience);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// What became of a request: its choices, or why it was refused or failed.
struct Outcome {
  std::vector<Completion> choices;
  std::optional<Error> error;
};

/// Sees every event before it is folded into its outcome, on the caller's thread.
using OnEvent = std::function<void(std::size_t request, const OutputEvent& event)>;

/// Runs all requests as one continuous batch and waits; outcomes in the order of the requests.
[[nodiscard]] std::vector<Outcome> run_requests(Engine& engine, std::vector<Request> requests, const OnEvent& on_event);

/// The same, with a progress bar that counts finished requests.
[[nodiscard]] std::vector<Outcome> run_requests(Engine& engine, std::vector<Request> requests, const char* what);

[[nodiscard]] const char* finish_name(FinishReason reason);  // "stop", "length", "abort", "error"

/// {"text", "tokens", "finish_reason", "logprobs"?, "prompt_logprobs"?, "usage"}
[[nodiscard]] Json to_json(const Completion& completion);
/// [[id, logprob], ...]
[[nodiscard]] Json to_json(const std::vector<std::pair<TokenId, float>>& top);

}  // namespace octavo
