#include "engine/active_request.h"

#include <utility>

namespace octavo {
namespace {

FinishReason reason_of(Finish why) {
  switch (why) {
    case Finish::kStop: return FinishReason::kStop;
    case Finish::kLength: return FinishReason::kLength;
    case Finish::kAbort: return FinishReason::kAbort;
    default: return FinishReason::kError;
  }
}

}  // namespace

ActiveRequest::ActiveRequest(RequestId id, std::shared_ptr<const Request> request, Sink sink,
                             const Tokenizer* tokenizer, Micros arrival)
    : id_(id), request_(std::move(request)), sink_(std::move(sink)) {
  const SamplingParams& params = request_->params;
  for (std::uint32_t i = 0; i < params.n; ++i) {
    Choice& choice = choices_.emplace_back(
        Choice{tokenizer == nullptr ? nullptr : tokenizer->detokenizer(params.skip_special_tokens),
               StopMatcher(params.stop, params.include_stop_str_in_output),
               {},
               {},
               true,
               std::nullopt});
    choice.usage.prompt_tokens = static_cast<std::uint32_t>(request_->prompt.size());
    choice.timings.arrival = arrival;
  }
  open_choices_ = params.n;
}

void ActiveRequest::scheduled(std::uint32_t index, Micros now, std::uint32_t cached_tokens) {
  choices_[index].timings.scheduled = now;
  choices_[index].usage.cached_tokens = cached_tokens;
}

bool ActiveRequest::token(std::uint32_t index, TokenId token, bool ends, SequenceSampling& sampling, Micros now) {
  Choice& choice = choices_[index];
  if (choice.timings.first_token == Micros{}) choice.timings.first_token = now;
  choice.timings.last_token = now;
  ++choice.usage.completion_tokens;
  if (ends) choice.stop_token = token;  // its text is no part of the answer

  OutputEvent out = event(index);
  out.tokens.push_back(token);
  out.logprobs = std::exchange(sampling.logprobs, {});
  if (index == 0) out.prompt_logprobs = std::exchange(sampling.prompt_logprobs, {});
  if (!ends && choice.detokenizer) {
    std::string text = choice.detokenizer->push(token);
    const bool may_stop = choice.usage.completion_tokens >= request_->params.min_tokens;
    out.text = may_stop ? choice.stop.feed(text) : std::move(text);
  }
  sink_(std::move(out));
  return choice.stop.matched().has_value();
}

void ActiveRequest::finish(std::uint32_t index, Finish why, const Error& failure, const Sequence* sequence,
                           SequenceSampling* sampling) {
  Choice& choice = choices_[index];
  if (!choice.open) return;
  if (sequence != nullptr) choice.timings.preemptions = sequence->preemptions;
  OutputEvent out = event(index);
  if (index == 0 && sampling != nullptr) out.prompt_logprobs = std::exchange(sampling->prompt_logprobs, {});
  out.finish = reason_of(why);
  if (choice.detokenizer && (why == Finish::kStop || why == Finish::kLength)) {
    out.text = choice.stop.feed(choice.detokenizer->finish());
    if (choice.stop.matched()) {
      out.stop_reason = *choice.stop.matched();
      out.finish = FinishReason::kStop;
    } else {
      out.text += choice.stop.finish();
    }
  }
  out.stop_token = choice.stop_token;
  if (why == Finish::kDeadline) {
    out.error = Error{ErrorCode::kDeadline,
                      "the deadline of " + std::to_string(request_->deadline->count()) +
                          " ms has passed before the request was complete: allow more time or ask for less",
                      "deadline_ms"};
  }
  if (why == Finish::kError) out.error = failure;
  close(index, std::move(out));
}

void ActiveRequest::refuse(const Error& error) {
  for (std::uint32_t i = 0; i < num_choices(); ++i) {
    OutputEvent out = event(i);
    out.finish = error.code == ErrorCode::kAborted ? FinishReason::kAbort : FinishReason::kError;
    out.error = error;
    close(i, std::move(out));
  }
}

OutputEvent ActiveRequest::event(std::uint32_t index) {
  OutputEvent out;
  out.request = id_;
  out.choice = index;
  out.usage = choices_[index].usage;
  out.timings = choices_[index].timings;
  return out;
}

void ActiveRequest::close(std::uint32_t index, OutputEvent&& out) {
  choices_[index].open = false;
  out.last = --open_choices_ == 0;
  sink_(std::move(out));
}

}  // namespace octavo
