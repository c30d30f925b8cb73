#include "cli/requests.h"

#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "cli/progress.h"

namespace octavo {

struct EventQueue::State {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<Item> items;
};

EventQueue::EventQueue() : state_(std::make_shared<State>()) {}

Sink EventQueue::sink(std::size_t request) const {
  return [state = state_, request](OutputEvent&& event) {
    {
      const std::lock_guard lock(state->mutex);
      state->items.push_back(Item{request, std::move(event)});
    }
    state->arrived.notify_one();
  };
}

std::optional<EventQueue::Item> EventQueue::pop(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  if (!state_->arrived.wait_for(lock, patience, [this] { return !state_->items.empty(); })) return std::nullopt;
  Item item = std::move(state_->items.front());
  state_->items.pop_front();
  return item;
}

namespace {

template <class T>
void append(std::vector<T>& target, std::vector<T>&& more) {
  target.insert(target.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void fold(Outcome& outcome, OutputEvent&& event) {
  if (event.choice >= outcome.choices.size()) outcome.choices.resize(event.choice + 1);
  Completion& completion = outcome.choices[event.choice];
  completion.choice = event.choice;
  completion.text += event.text;
  append(completion.tokens, std::move(event.tokens));
  append(completion.logprobs, std::move(event.logprobs));
  append(completion.prompt_logprobs, std::move(event.prompt_logprobs));
  completion.usage = event.usage;
  completion.timings = event.timings;
  if (event.finish) {
    completion.finish = *event.finish;
    completion.stop_reason = std::move(event.stop_reason);
  }
  if (event.error) outcome.error = std::move(event.error);
}

}  // namespace

std::vector<Outcome> run_requests(Engine& engine, std::vector<Request> requests, const OnEvent& on_event) {
  constexpr std::chrono::milliseconds kPatience{1000};
  std::vector<Outcome> outcomes(requests.size());
  EventQueue queue;
  std::size_t unfinished = 0;
  const auto take_one = [&] {
    auto item = queue.pop(kPatience);
    if (!item) return;
    if (item->event.last) --unfinished;
    if (on_event) on_event(item->request, item->event);
    fold(outcomes[item->request], std::move(item->event));
  };

  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto submitted = engine.submit(requests[i], queue.sink(i));
    while (!submitted && submitted.error().code == ErrorCode::kExhausted && unfinished > 0) {  // the queue is full
      take_one();
      submitted = engine.submit(requests[i], queue.sink(i));
    }
    if (submitted) {
      ++unfinished;
    } else {
      outcomes[i].error = submitted.error();
    }
  }
  while (unfinished > 0) take_one();
  return outcomes;
}

std::vector<Outcome> run_requests(Engine& engine, std::vector<Request> requests, const char* what) {
  ProgressBar bar(ProgressBar::Unit::kItems);
  const std::uint64_t total = requests.size();
  std::uint64_t finished = 0;
  return run_requests(engine, std::move(requests), [&](std::size_t, const OutputEvent& event) {
    if (event.last) ++finished;
    bar.update(what, finished, total);
  });
}

const char* finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kAbort: return "abort";
    case FinishReason::kError: return "error";
  }
  return "error";
}

Json to_json(const std::vector<std::pair<TokenId, float>>& top) {
  Json list = Json::array();
  for (const auto& [id, logprob] : top) list.push_back(Json::array({id.value, logprob}));
  return list;
}

namespace {

Json to_json(const std::vector<TokenLogprob>& logprobs) {
  Json list = Json::array();
  for (const TokenLogprob& token : logprobs) {
    list.push_back({{"id", token.id.value},
                    {"logprob", token.logprob ? Json(*token.logprob) : Json(nullptr)},
                    {"top", octavo::to_json(token.top)}});
  }
  return list;
}

}  // namespace

Json to_json(const Completion& completion) {
  Json tokens = Json::array();
  for (const TokenId id : completion.tokens) tokens.push_back(id.value);
  Json out = {{"text", completion.text}, {"tokens", tokens}, {"finish_reason", finish_name(completion.finish)}};
  if (!completion.stop_reason.empty()) out["stop_reason"] = completion.stop_reason;
  if (!completion.logprobs.empty()) out["logprobs"] = to_json(completion.logprobs);
  if (!completion.prompt_logprobs.empty()) out["prompt_logprobs"] = to_json(completion.prompt_logprobs);
  const Usage& usage = completion.usage;
  out["usage"] = {{"prompt_tokens", usage.prompt_tokens},
                  {"completion_tokens", usage.completion_tokens},
                  {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
                  {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
  return out;
}

}  // namespace octavo
