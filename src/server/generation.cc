#include "server/generation.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <iterator>
#include <random>

namespace octavo {
namespace {

std::string new_id(const char* prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}{:016x}{:08x}", prefix, random(), static_cast<std::uint32_t>(random()));
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

Generation::Generation(Service& service, std::shared_ptr<Exchange> exchange, const GenerationCall& call,
                       std::vector<TextPrompt> prompts, std::unique_ptr<AnswerFormat> format)
    : service_(service),
      exchange_(std::move(exchange)),
      call_(call),
      prompts_(std::move(prompts)),
      format_(std::move(format)),
      id_(new_id(format_->id_prefix())),
      model_(call.model.empty() ? service.models.front() : call.model),
      created_(unix_seconds()),
      choices_(prompts_.size() * call.params.n) {
  ++service_.at_work;
}

Generation::~Generation() { --service_.at_work; }

void Generation::start(Service& service, std::shared_ptr<Exchange> exchange, const GenerationCall& call,
                       std::vector<TextPrompt> prompts, std::unique_ptr<AnswerFormat> format,
                       std::uint32_t default_max_tokens) {
  const auto generation = std::make_shared<Generation>(service, exchange, call, std::move(prompts), std::move(format));
  if (const auto refused = generation->submit(default_max_tokens)) {
    generation->abort();
    return exchange->reply(error_response(*refused));
  }
  exchange->on_gone([generation] {
    generation->log("aborted, the client left");
    generation->abort();
  });
  if (call.stream) exchange->begin_events();
}

std::optional<ApiError> Generation::submit(std::uint32_t default_max_tokens) {
  if (service_.draining) {
    return to_api_error({ErrorCode::kUnavailable, "The server is shutting down and takes no new requests.", {}});
  }
  const std::uint64_t limit = service_.engine.report().max_model_len;
  std::vector<Request> requests;
  for (const TextPrompt& prompt : prompts_) {
    const std::uint64_t tokens = prompt.ids.size();
    if (tokens == 0) {
      return to_api_error({ErrorCode::kInvalidArgument, "The prompt has no tokens; send at least one.", "prompt"});
    }
    const std::uint64_t room = tokens < limit ? limit - tokens : 0;
    const std::uint64_t wanted =
        call_.max_tokens.value_or(static_cast<std::uint32_t>(std::min<std::uint64_t>(default_max_tokens, room)));
    if (room == 0 || wanted > room) return context_overflow(tokens, wanted, limit);
    Request request;
    request.prompt = prompt.ids;
    request.params = call_.params;
    request.priority = call_.priority;
    request.cache_salt = call_.cache_salt;
    request.deadline = call_.deadline;
    request.params.max_tokens = static_cast<std::uint32_t>(wanted);
    requests.push_back(std::move(request));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    service_.metrics.request(static_cast<std::uint32_t>(requests[i].prompt.size()), requests[i].params);
    auto sink = [self = shared_from_this(), i](OutputEvent&& event) {
      self->exchange_->post([self, i, event = std::move(event)]() mutable { self->on_event(i, std::move(event)); });
    };
    const auto id = service_.engine.submit(std::move(requests[i]), std::move(sink));
    if (!id) return told(id.error());
    requests_.push_back(*id);
  }
  return std::nullopt;
}

ApiError Generation::told(const Error& error) const {
  ApiError out = to_api_error(error);
  out.retry_after_s = service_.finish_rate.retry_after_seconds(FinishRate::Clock::now());
  return out;
}

void Generation::on_event(std::size_t prompt, OutputEvent event) {
  if (event.last) service_.finish_rate.finished(FinishRate::Clock::now());
  if (done_) return;
  if (event.finish == FinishReason::kError) {
    return fail(event.error.value_or(Error{ErrorCode::kInternal, "The engine failed on this request.", {}}));
  }
  if (event.finish == FinishReason::kAbort) {
    return fail(
        {ErrorCode::kUnavailable, "The server is shutting down and ended this request before it was complete.", {}});
  }
  const std::size_t index = prompt * call_.params.n + event.choice;
  if (event.choice >= call_.params.n) return;
  Choice& choice = choices_[index];
  service_.metrics.event(event, choice.whole.timings.last_token);
  if (!event.prompt_logprobs.empty()) prompts_[prompt].logprobs = std::move(event.prompt_logprobs);

  const bool last = event.last;
  choice.whole.usage = event.usage;
  choice.whole.timings = event.timings;
  if (call_.stream)
    stream(prompt, index, event);
  else
    collect(index, std::move(event));
  if (last && ++ended_ == prompts_.size() && !done_) complete();
}

void Generation::stream(std::size_t prompt, std::size_t index, OutputEvent& event) {
  Choice& choice = choices_[index];
  auto chunks = format_->chunks({index, prompts_[prompt], event, !choice.started, choice.text_offset});
  choice.started = choice.started || !chunks.empty();
  for (Json& chunk : chunks) {
    Json body = envelope(Json::array({std::move(chunk)}), true);
    if (call_.include_usage) body["usage"] = call_.continuous_usage ? usage_json(usage()) : Json(nullptr);
    exchange_->send_event(to_text(body));
  }
}

void Generation::collect(std::size_t index, OutputEvent&& event) {
  OutputEvent& whole = choices_[index].whole;
  whole.text += event.text;
  append(whole.tokens, std::move(event.tokens));
  append(whole.logprobs, std::move(event.logprobs));
  whole.finish = event.finish;
  whole.stop_reason = std::move(event.stop_reason);
  whole.stop_token = event.stop_token;
}

void Generation::complete() {
  done_ = true;
  log("finished");
  if (call_.stream) {
    if (call_.include_usage) {
      Json body = envelope(Json::array(), true);
      body["usage"] = usage_json(usage());
      exchange_->send_event(to_text(body));
    }
    return exchange_->end_events();
  }
  Json choices = Json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    choices.push_back(format_->whole({i, prompts_[i / call_.params.n], choice.whole, true, choice.text_offset}));
  }
  Json body = envelope(std::move(choices), false);
  body["usage"] = usage_json(usage());
  reply_json(*exchange_, body);
}

void Generation::fail(const Error& error) {
  abort();
  log(error.message.c_str());
  if (!call_.stream) return exchange_->reply(error_response(told(error)));
  exchange_->send_event(to_text(error_body(told(error))));
  exchange_->end_events();
}

void Generation::abort() {
  done_ = true;
  for (const RequestId id : requests_) service_.engine.abort(id);
}

Json Generation::envelope(Json choices, bool chunk) const {
  return {{"id", id_},
          {"object", format_->object(chunk)},
          {"created", created_},
          {"model", model_},
          {"system_fingerprint", service_.engine.report().fingerprint},
          {"choices", std::move(choices)}};
}

Usage Generation::usage() const {
  Usage sum;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Usage& usage = choices_[i].whole.usage;
    sum.completion_tokens += usage.completion_tokens;
    if (i % call_.params.n == 0) sum.cached_tokens += usage.cached_tokens;
  }
  for (const TextPrompt& prompt : prompts_) sum.prompt_tokens += static_cast<std::uint32_t>(prompt.ids.size());
  return sum;
}

void Generation::log(const char* how) const {
  const Usage sum = usage();
  spdlog::info("{} {}: prompt {} (cached {}), generated {}: {}", exchange_->request().request_id,
               exchange_->request().path, sum.prompt_tokens, sum.cached_tokens, sum.completion_tokens, how);
}

}  // namespace octavo
