// An Engine without a model: bytes are tokens, and what comes next is a fixed function of the request. For tests of
// what stands in front of an engine.
//
// Token i of choice c is a letter chosen by (sum of the prompt's ids + seed + c + i), unless a script or a logit bias
// of 100 says otherwise; a script ends with the end-of-text token.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "octavo/engine.h"

namespace octavo {

/// Ids 0..255 are bytes, 256 begins a text, 257 ends it.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr TokenId kBos{256}, kEos{257};

  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override {
    std::vector<TokenId> ids;
    if (options.add_special) ids.push_back(kBos);
    for (const char c : text) ids.push_back({static_cast<unsigned char>(c)});
    return ids;
  }
  [[nodiscard]] Result<std::string> decode(std::span<const TokenId> ids, bool skip_special) const override {
    std::string text;
    for (const TokenId id : ids) {
      if (!(skip_special && is_special(id))) text += token_bytes(id);
    }
    return text;
  }
  [[nodiscard]] std::unique_ptr<Detokenizer> detokenizer(bool /*skip_special*/) const override { return nullptr; }
  [[nodiscard]] std::uint32_t vocab_size() const override { return 258; }
  [[nodiscard]] std::string token_bytes(TokenId id) const override {
    if (id == kBos) return "<s>";
    if (id == kEos) return "</s>";
    return {static_cast<char>(id.value)};
  }
  [[nodiscard]] bool is_special(TokenId id) const override { return id.value >= 256; }
  [[nodiscard]] std::optional<TokenId> bos() const override { return kBos; }
  [[nodiscard]] std::optional<TokenId> eos() const override { return kEos; }
  [[nodiscard]] std::span<const TokenId> end_of_generation() const override { return {&kEos, 1}; }
  [[nodiscard]] std::uint32_t most_bytes_per_token() const override { return 1024; }  // any bound from 5 on holds
  [[nodiscard]] std::string description() const override { return "bytes"; }
};

struct FakeEngineConfig {
  std::string script;                         // what every choice says; empty: letters without end
  std::string chat_template;                  // empty: the model has none
  std::chrono::milliseconds prefill_delay{};  // before the first token
  std::chrono::milliseconds token_delay{};    // before every other
  std::uint32_t max_running = 64;
  std::uint32_t max_queued = 4096;
  std::uint32_t max_model_len = 4096;
  bool fails = false;               // every request ends with kError at its second token
  std::uint32_t cached_tokens = 0;  // of every prompt
};

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(FakeEngineConfig config) : config_(std::move(config)) {
    report_.model.path = "/models/fake.gguf";
    report_.model.name = "Fake";
    report_.model.vocab_size = tokenizer_.vocab_size();
    report_.model.context_length = config_.max_model_len;
    report_.fingerprint = "fp_fake";
    report_.max_model_len = config_.max_model_len;
    report_.block_tokens = 16;
    report_.num_blocks = 1024;
    if (!config_.chat_template.empty()) {
      auto parsed = ChatTemplate::parse(config_.chat_template);
      if (parsed) chat_template_ = std::make_unique<ChatTemplate>(std::move(*parsed));
    }
    thread_ = std::thread([this] { loop(); });
  }

  ~FakeEngine() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Result<> health() const override { return Ok{}; }

  Result<RequestId> submit(Request request, Sink sink) override {
    const std::lock_guard lock(mutex_);
    if (draining_) return Error{ErrorCode::kUnavailable, "The engine is draining.", {}};
    if (waiting_.size() >= config_.max_queued) return Error{ErrorCode::kExhausted, "The queue is full.", {}};
    const RequestId id{next_id_++};
    seen_.push_back(request);
    waiting_.push_back({id, std::move(request), std::move(sink), now(), {}, {}, {}, 0, {}});
    changed_.notify_all();
    return id;
  }

  void abort(RequestId id) override {
    const std::lock_guard lock(mutex_);
    aborted_.insert(id.value);
    changed_.notify_all();
  }

  Result<std::vector<std::vector<Completion>>> generate(std::vector<Request> /*requests*/) override {
    return Error{ErrorCode::kUnsupported, "The fake engine only streams.", {}};
  }

  [[nodiscard]] const EngineReport& report() const override { return report_; }
  [[nodiscard]] const Tokenizer* tokenizer() const override { return &tokenizer_; }
  [[nodiscard]] const ChatTemplate* chat_template() const override { return chat_template_.get(); }

  [[nodiscard]] std::vector<MemoryUse> memory() const override {
    return {{"weights", 1000, 900}, {"kv pool", 2000, 2000}};
  }
  [[nodiscard]] EngineStats stats() const override {
    const std::lock_guard lock(mutex_);
    EngineStats stats = stats_;
    stats.running = static_cast<std::uint32_t>(running_.size());
    stats.waiting = static_cast<std::uint32_t>(waiting_.size());
    stats.blocks_total = report_.num_blocks;
    stats.blocks_used = stats.running;
    return stats;
  }

  [[nodiscard]] std::vector<RecentStep> recent_steps(std::size_t /*most*/) const override { return {}; }

  Result<> reset_prefix_cache() override {
    const std::lock_guard lock(mutex_);
    if (!running_.empty()) return Error{ErrorCode::kBusy, "The fake engine's cache is in use.", {}};
    ++resets_;
    return Ok{};
  }

  bool drain(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    draining_ = true;
    const auto idle = [&] { return waiting_.empty() && running_.empty(); };
    if (changed_.wait_for(lock, timeout, idle)) return true;
    for (const Active& active : waiting_) aborted_.insert(active.id.value);
    for (const Active& active : running_) aborted_.insert(active.id.value);
    changed_.notify_all();
    changed_.wait(lock, idle);
    return false;
  }

  /// Requests that ended because they were aborted.
  [[nodiscard]] std::uint64_t aborted() const { return stats().finished_abort; }
  [[nodiscard]] std::uint32_t resets() const {
    const std::lock_guard lock(mutex_);
    return resets_;
  }
  [[nodiscard]] std::vector<Request> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  using Time = std::chrono::microseconds;
  struct Active {
    RequestId id;
    Request request;
    Sink sink;
    Time arrival, scheduled, first, due;
    std::uint32_t generated;        // by every choice
    std::set<std::uint32_t> ended;  // choices
  };

  static Time now() { return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now().time_since_epoch()); }

  void loop() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      while (!waiting_.empty() && running_.size() < config_.max_running) {
        running_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
        running_.back().scheduled = now();
        running_.back().due = now() + config_.prefill_delay;
      }
      step(lock, waiting_);
      step(lock, running_);
      changed_.notify_all();
      if (running_.empty())
        changed_.wait_for(lock, std::chrono::milliseconds(50));
      else
        changed_.wait_for(lock, std::chrono::microseconds(200));
    }
  }

  /// One token for everyone in the queue that is due; those that ended leave.
  void step(std::unique_lock<std::mutex>& lock, std::deque<Active>& queue) {
    for (std::size_t i = 0; i < queue.size();) {
      Active active = std::move(queue[i]);
      std::vector<OutputEvent> events;
      if (aborted_.contains(active.id.value)) {
        OutputEvent event = event_of(active, 0);
        event.finish = FinishReason::kAbort;
        event.last = true;
        events.push_back(std::move(event));
        ++stats_.finished_abort;
      } else if (active.request.deadline && active.arrival + *active.request.deadline <= now()) {
        OutputEvent event = event_of(active, 0);
        event.finish = FinishReason::kError;
        event.error = Error{ErrorCode::kDeadline, "The fake engine's deadline has passed.", "deadline_ms"};
        event.last = true;
        events.push_back(std::move(event));
        ++stats_.finished_deadline;
      } else if (&queue == &running_ && active.due <= now()) {
        events = advance(active);
      }
      const bool last = !events.empty() && events.back().last;
      lock.unlock();
      for (OutputEvent& event : events) active.sink(std::move(event));
      if (last) active.sink = nullptr;
      lock.lock();
      if (last) {
        queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        queue[i] = std::move(active);
        ++i;
      }
    }
  }

  OutputEvent event_of(const Active& active, std::uint32_t choice) const {
    OutputEvent event;
    event.request = active.id;
    event.choice = choice;
    event.usage = {static_cast<std::uint32_t>(active.request.prompt.size()), active.generated, config_.cached_tokens};
    event.timings = {active.arrival, active.scheduled, active.first, active.first, 0};
    return event;
  }

  std::vector<OutputEvent> advance(Active& active) {
    const SamplingParams& params = active.request.params;
    std::vector<OutputEvent> events;
    const bool score_only = params.max_tokens == 0;
    if (!score_only) ++active.generated;
    if (active.generated == 1) active.first = now();
    active.due = now() + config_.token_delay;
    ++stats_.steps;
    for (std::uint32_t choice = 0; choice < params.n; ++choice) {
      if (active.ended.contains(choice)) continue;
      OutputEvent event = event_of(active, choice);
      event.timings.last_token = now();
      if (choice == 0 && params.prompt_logprobs && active.generated <= 1) add_prompt_logprobs(active, event);
      if (!score_only) add_token(active, event);
      if (!event.finish && active.generated >= params.max_tokens) event.finish = FinishReason::kLength;
      if (config_.fails && active.generated == 2) {
        event.finish = FinishReason::kError;
        event.error = Error{ErrorCode::kInternal, "The fake engine was told to fail.", {}};
        event.last = true;
        events.push_back(std::move(event));
        return events;
      }
      if (event.finish) {
        active.ended.insert(choice);
        ++(event.finish == FinishReason::kStop ? stats_.finished_stop : stats_.finished_length);
      }
      event.last = active.ended.size() == params.n;
      events.push_back(std::move(event));
    }
    return events;
  }

  void add_token(const Active& active, OutputEvent& event) {
    const SamplingParams& params = active.request.params;
    const std::uint32_t place = active.generated - 1;
    TokenId token{};
    if (!config_.script.empty()) {
      const bool over = place >= config_.script.size() && !params.ignore_eos;
      token = over ? ByteTokenizer::kEos
                   : TokenId{static_cast<unsigned char>(config_.script[place % config_.script.size()])};
    } else {
      std::uint64_t sum = params.seed.value_or(0) + event.choice + place;
      for (const TokenId id : active.request.prompt) sum += static_cast<std::uint64_t>(id.value);
      token = {static_cast<std::int32_t>('a' + sum % 26)};
    }
    for (const auto& [id, bias] : params.logit_bias) {
      if (bias == 100) token = id;
    }
    event.tokens.push_back(token);
    ++stats_.generated_tokens;
    if (params.logprobs) event.logprobs.push_back(logprob_of(token, *params.logprobs));
    if (token == ByteTokenizer::kEos ||
        std::find(params.stop_token_ids.begin(), params.stop_token_ids.end(), token) != params.stop_token_ids.end()) {
      event.finish = FinishReason::kStop;
      event.stop_token = token;
      return;
    }
    event.text = tokenizer_.token_bytes(token);
    for (const std::string& stop : params.stop) {
      if (stop == event.text) {
        event.finish = FinishReason::kStop;
        event.stop_reason = stop;
        if (!params.include_stop_str_in_output) event.text.clear();
      }
    }
  }

  /// The token itself is never among the alternatives, and the last of them is impossible.
  static TokenLogprob logprob_of(TokenId token, std::uint32_t alternatives) {
    TokenLogprob out{token, -0.5F, {}};
    for (std::uint32_t k = 1; k <= alternatives; ++k) {
      const float logprob =
          k > 1 && k == alternatives ? -std::numeric_limits<float>::infinity() : -0.25F - static_cast<float>(k - 1);
      out.top.emplace_back(TokenId{static_cast<std::int32_t>((static_cast<std::uint32_t>(token.value) + k) % 128)},
                           logprob);
    }
    return out;
  }

  static void add_prompt_logprobs(const Active& active, OutputEvent& event) {
    for (const TokenId id : active.request.prompt) {
      event.prompt_logprobs.push_back(logprob_of(id, *active.request.params.prompt_logprobs));
    }
    event.prompt_logprobs.front() = {active.request.prompt.front(), std::nullopt, {}};
  }

  FakeEngineConfig config_;
  ByteTokenizer tokenizer_;
  std::unique_ptr<ChatTemplate> chat_template_;
  EngineReport report_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Active> waiting_, running_;
  std::set<std::uint64_t> aborted_;
  std::vector<Request> seen_;
  EngineStats stats_;
  std::uint32_t resets_ = 0;
  std::uint64_t next_id_ = 1;
  bool draining_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace octavo
