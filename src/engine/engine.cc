// The step loop: requests in, plans, steps, events out. One thread owns scheduler, KV, model and sampling.
#include "octavo/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/prefault.h"
#include "base/published.h"
#include "engine/active_request.h"
#include "engine/memory_use.h"
#include "engine/observer.h"
#include "engine/resources.h"
#include "engine/step_memo.h"
#include "sample/validate.h"

namespace octavo {
namespace {

constexpr std::uint64_t kStepsThatTeach = 200;  // a machine's hiccup at load is outlived by then

Micros steady_now() { return std::chrono::duration_cast<Micros>(std::chrono::steady_clock::now().time_since_epoch()); }

/// Waits for all choices of several requests; shared with their sinks.
class Collector {
 public:
  explicit Collector(std::size_t requests) : completions_(requests), open_(requests) {}

  Sink sink(std::size_t index) {
    return [this, index](OutputEvent&& event) { add(index, std::move(event)); };
  }

  Result<std::vector<std::vector<Completion>>> wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return open_ == 0; });
    if (error_) return *error_;
    return std::move(completions_);
  }

 private:
  void add(std::size_t index, OutputEvent&& event) {
    const std::lock_guard lock(mutex_);
    std::vector<Completion>& choices = completions_[index];
    if (choices.size() <= event.choice) choices.resize(event.choice + 1);
    Completion& c = choices[event.choice];
    const auto append = [](auto& to, auto& from) {
      to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    };
    c.choice = event.choice;
    c.text += event.text;
    append(c.tokens, event.tokens);
    append(c.logprobs, event.logprobs);
    append(c.prompt_logprobs, event.prompt_logprobs);
    c.usage = event.usage;
    c.timings = event.timings;
    if (event.finish) c.finish = *event.finish;
    c.stop_reason = event.stop_reason;
    if (event.error && !error_) error_ = std::move(event.error);
    if (event.last && --open_ == 0) done_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<std::vector<Completion>> completions_;
  std::size_t open_;
  std::optional<Error> error_;
};

class LocalEngine final : public Engine {
 public:
  LocalEngine(std::unique_ptr<EngineResources> resources, std::unique_ptr<TraceWriter> trace,
              const EngineConfig& config)
      : r_(std::move(resources)),
        max_queued_(config.max_queued),
        observer_(std::move(trace)),
        thread_([this] { loop(); }) {
    if (r_->pack_check != nullptr) {
      pack_check_ = std::make_unique<BackgroundPackCheck>(std::move(r_->pack_check),
                                                          [this](const std::string& fault) { fail(fault); });
    }
    if (config.prefault_kv) {
      std::vector<std::span<std::byte>> memory = r_->model->memory();
      memory.push_back(r_->store->memory());
      prefault_.emplace(std::move(memory));
    }
  }

  ~LocalEngine() override {
    pack_check_.reset();
    {
      const std::lock_guard lock(mutex_);
      draining_ = stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
    if (r_->scheduler->counters().steps >= kStepsThatTeach) {
      r_->measured.costs = r_->pacer->time().costs();
      remember_steps(r_->step_memo, r_->measured);
    }
  }

  Result<RequestId> submit(Request request, Sink sink) override {
    OCTAVO_CHECK_OK(check(request));
    const std::lock_guard lock(mutex_);
    if (broken_) return *broken_;
    if (draining_) return Error{ErrorCode::kUnavailable, "the server is shutting down and takes no new requests", ""};
    if (waiting_.load() + inbox_.size() >= max_queued_) {
      return Error{ErrorCode::kExhausted,
                   fmt::format("the queue is full: {} requests are waiting, the limit is {}; retry later",
                               waiting_.load() + inbox_.size(), max_queued_),
                   ""};
    }
    const RequestId id{++last_request_};
    inbox_.push_back({id, std::make_shared<const Request>(std::move(request)), std::move(sink), steady_now()});
    ++open_requests_;
    has_mail_.store(true, std::memory_order_release);
    wake_.notify_one();
    return id;
  }

  void abort(RequestId id) override {
    const std::lock_guard lock(mutex_);
    aborts_.push_back(id);
    has_mail_.store(true, std::memory_order_release);
    wake_.notify_one();
  }

  Result<std::vector<std::vector<Completion>>> generate(std::vector<Request> requests) override {
    for (const Request& request : requests) OCTAVO_CHECK_OK(check(request));
    Collector collector(requests.size());
    if (requests.empty()) return std::vector<std::vector<Completion>>{};
    std::vector<RequestId> submitted;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto id = submit(std::move(requests[i]), collector.sink(i));
      if (id) {
        submitted.push_back(*id);
        continue;
      }
      // What did start must end before its sink goes away.
      for (const RequestId other : submitted) abort(other);
      for (std::size_t rest = i; rest < requests.size(); ++rest) {
        OutputEvent never;
        never.error = id.error();
        never.last = true;
        collector.sink(rest)(std::move(never));
      }
      break;
    }
    return collector.wait();
  }

  const EngineReport& report() const override { return r_->report; }
  const Tokenizer* tokenizer() const override { return r_->tokenizer.get(); }
  const ChatTemplate* chat_template() const override { return r_->chat_template ? &*r_->chat_template : nullptr; }
  EngineStats stats() const override { return stats_.load(); }
  std::vector<MemoryUse> memory() const override { return memory_use(*r_); }
  std::vector<RecentStep> recent_steps(std::size_t most) const override { return observer_.recent(most); }

  Result<> health() const override {
    const std::lock_guard lock(mutex_);
    if (broken_) return *broken_;
    return Ok{};
  }

  Result<> reset_prefix_cache() override {
    std::promise<Result<>> done;
    std::future<Result<>> answer = done.get_future();
    {
      const std::lock_guard lock(mutex_);
      resets_.push_back(&done);
      has_mail_.store(true, std::memory_order_release);
      wake_.notify_one();
    }
    return answer.get();
  }

  bool drain(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    draining_ = true;
    if (idle_.wait_for(lock, timeout, [this] { return open_requests_ == 0; })) return true;
    abort_all_ = true;
    has_mail_.store(true, std::memory_order_release);
    wake_.notify_one();
    idle_.wait(lock, [this] { return open_requests_ == 0; });
    return false;
  }

 private:
  struct Mail {
    RequestId id;
    std::shared_ptr<const Request> request;
    Sink sink;
    Micros arrival;
  };
  struct Active {
    ActiveRequest request;
    SeqId first_seq;  // its choices are consecutive
  };
  struct Owner {
    Active* active;
    std::uint32_t choice;
  };

  Result<> check(const Request& request) const {
    const std::uint32_t vocab = r_->spec.vocab_size;
    OCTAVO_CHECK_OK(validate(request.params, vocab));
    if (request.prompt.empty())
      return Error{ErrorCode::kInvalidArgument, "the prompt is empty: at least one token is needed", "prompt"};
    for (const TokenId token : request.prompt) {
      if (token.value < 0 || static_cast<std::uint32_t>(token.value) >= vocab) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("prompt token id {} is outside the vocabulary of {} tokens", token.value, vocab),
                     "prompt"};
      }
    }
    if (request.cache_salt.size() > kMaxCacheSaltBytes) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("cache_salt has {} bytes, the limit is {}: send a hash of it instead",
                               request.cache_salt.size(), kMaxCacheSaltBytes),
                   "cache_salt"};
    }
    if (request.deadline && (request.deadline->count() < 1 || *request.deadline > kMaxDeadline)) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("deadline_ms is {}, but must be from 1 to {}", request.deadline->count(), kMaxDeadline.count()),
          "deadline_ms"};
    }
    const std::uint64_t prompt = request.prompt.size();
    const std::uint64_t total = prompt + request.params.max_tokens;
    if (total > r_->report.max_model_len) {
      return Error{
          ErrorCode::kContextLength,
          fmt::format("This model's maximum context length is {} tokens. However, you requested {} tokens ({} in "
                      "the prompt, {} in the completion). Please reduce the length of the prompt or completion.",
                      r_->report.max_model_len, total, prompt, request.params.max_tokens),
          "prompt"};
    }
    return Ok{};
  }

  /// The weights are not what they should be: nothing that came from them counts.
  void fail(const std::string& fault) {
    const std::lock_guard lock(mutex_);
    broken_ = Error{ErrorCode::kUnavailable,
                    fault + "; restart the server: it will pack the model again. This one serves no more requests", ""};
    has_mail_.store(true, std::memory_order_release);
    wake_.notify_one();
  }

  // From here on: the engine thread.

  void loop() {
    r_->pool->bind_caller();
    for (;;) {
      if (has_mail_.load(std::memory_order_acquire)) take_mail();
      if (stopping_.load()) end_everything(Finish::kAbort);
      if (r_->scheduler->has_work() && step()) continue;
      std::unique_lock lock(mutex_);
      if (stopping_ && inbox_.empty()) return;
      wake_.wait_for(lock, std::chrono::milliseconds(100), [this] { return has_mail_.load() || stopping_.load(); });
    }
  }

  void take_mail() {
    std::vector<Mail> arrived;
    std::vector<RequestId> aborted;
    std::vector<std::promise<Result<>>*> resets;
    bool all = false;
    {
      const std::lock_guard lock(mutex_);
      if (broken_) failure_ = *broken_, broke_ = true;
      arrived.swap(inbox_);
      aborted.swap(aborts_);
      resets.swap(resets_);
      all = std::exchange(abort_all_, false);
      has_mail_.store(false, std::memory_order_release);
    }
    for (Mail& mail : arrived) start(std::move(mail));
    for (const RequestId id : aborted) end(id, Finish::kAbort);
    if (broke_) end_everything(Finish::kError);
    if (all) end_everything(Finish::kAbort);
    deliver_ended();
    for (std::promise<Result<>>* done : resets) done->set_value(forget_prefixes());
    publish();
  }

  Result<> forget_prefixes() {
    if (r_->kv->reset_prefix_cache()) {
      trace_kv();
      return Ok{};
    }
    const KvCounters kv = r_->kv->counters();
    return Error{
        ErrorCode::kBusy,
        fmt::format("the prefix cache is in use: {} sequences hold {} of {} KV blocks; retry when they are done",
                    r_->scheduler->num_running(), kv.blocks_total - kv.blocks_free, kv.blocks_total),
        ""};
  }

  void start(Mail mail) {
    const SamplingParams& params = mail.request->params;
    Active& active = *active_
                          .emplace(mail.id.value,
                                   std::make_unique<Active>(Active{
                                       {mail.id, mail.request, std::move(mail.sink), r_->tokenizer.get(), mail.arrival},
                                       {last_seq_ + 1}}))
                          .first->second;
    const std::uint64_t seed = params.seed.value_or(seeds_());
    for (std::uint32_t choice = 0; choice < params.n; ++choice) {
      const SeqId seq{++last_seq_};
      SeqLimits limits;
      limits.max_new_tokens = params.max_tokens;
      limits.priority = mail.request->priority;
      limits.prompt_logits = params.prompt_logprobs.has_value() && choice == 0;
      limits.cache_salt = mail.request->cache_salt;
      if (mail.request->deadline) limits.deadline = mail.arrival + *mail.request->deadline;
      r_->sampling->add(seq, mail.request, seed, choice);
      owners_[seq.value] = {&active, choice};
      const Refusal refusal = choice == 0 ? r_->scheduler->add(seq, limits, mail.request->prompt, mail.arrival)
                                          : r_->scheduler->fork(seq, active.first_seq, limits, mail.arrival);
      if (refusal.why == Refusal::Why::kNone) continue;
      refuse(active, seq, refusal);
      return;
    }
    observer_.arrived(mail.id, *mail.request, mail.arrival);
  }

  void refuse(Active& active, SeqId at, const Refusal& refusal) {
    const bool full = refusal.why == Refusal::Why::kQueueFull;
    active.request.refuse(
        {full ? ErrorCode::kExhausted : ErrorCode::kContextLength,
         full ? fmt::format("the queue is full: the limit is {} waiting sequences; retry later", refusal.limit)
              : fmt::format("the request needs {} tokens, the limit is {}", refusal.asked, refusal.limit),
         ""});
    for (SeqId seq = active.first_seq; seq <= at; ++seq.value) {
      if (seq < at) r_->scheduler->finish(seq, Finish::kAbort);
      owners_.erase(seq.value);
      r_->sampling->drop(seq);
    }
    forget(active.request.id());
  }

  void end(RequestId id, Finish why) {
    const auto found = active_.find(id.value);
    if (found == active_.end()) return;
    const Active& active = *found->second;
    for (std::uint32_t i = 0; i < active.request.num_choices(); ++i) {
      r_->scheduler->finish({active.first_seq.value + i}, why);
    }
  }

  void end_everything(Finish why) {
    for (const auto& entry : active_) end({entry.first}, why);
    deliver_ended();
  }

  /// One plan, run and applied. False: the scheduler had nothing to do.
  bool step() {
    Scheduler& scheduler = *r_->scheduler;
    StepFacts facts;
    facts.begin = steady_now();
    scheduler.expire(facts.begin);
    deliver_ended();
    facts.budget = std::clamp(r_->pacer->budget(scheduler, *r_->kv, facts.begin), scheduler.num_running(),
                              r_->report.max_num_batched_tokens);
    if (!scheduler.schedule(plan_, facts.budget)) return false;
    const std::uint64_t queried_before = scheduler.counters().queried_tokens;
    scheduler.commit(plan_);
    facts.lookup_tokens = scheduler.counters().queried_tokens - queried_before;
    const Micros begin = steady_now();
    for (const Admission& admission : plan_.admitted) {
      if (admission.resumed == 0) start_running(admission.seq, begin);
    }
    list_batch();
    r_->executor->run(plan_, result_);
    const Micros end = steady_now();
    facts.run = end - begin;
    r_->pacer->observe(plan_, facts.run);
    scheduler.apply(result_);
    deliver_tokens(end);
    facts.running = scheduler.num_running(), facts.waiting = scheduler.num_waiting();
    facts.kv = r_->kv->counters();
    facts.duration = steady_now() - facts.begin;
    observer_.step(plan_, result_, facts, batch_);  // who gets a last event finds its step recorded
    trace_kv();
    deliver_ended();
    publish();
    return true;
  }

  void start_running(SeqId seq, Micros now) {
    const Owner owner = owners_.at(seq.value);
    const Sequence& sequence = *r_->scheduler->find(seq);
    owner.active->request.scheduled(owner.choice, now, sequence.cached_tokens);
    observer_.scheduled(owner.active->request.id(), owner.choice, now, sequence.cached_tokens);
  }

  void list_batch() {
    batch_.clear();
    for (const StepRow& row : plan_.rows) {
      const Owner owner = owners_.at(row.seq.value);
      batch_.push_back({owner.active->request.id(), owner.choice, row.first_pos.value, row.num_tokens, row.num_prompt});
    }
  }

  void deliver_tokens(Micros now) {
    for (const RowResult& row : result_.rows) {
      if (row.num_tokens == 0) continue;
      const auto owner = owners_.find(row.seq.value);
      if (owner == owners_.end()) continue;
      ActiveRequest& request = owner->second.active->request;
      const std::uint32_t choice = owner->second.choice;
      observer_.token(request.id(), choice, now, !request.has_token(choice));
      const bool stopped = request.token(choice, result_.tokens[row.tokens_begin], row.end == RowEnd::kStopped,
                                         r_->sampling->at(row.seq), now);
      if (stopped) r_->scheduler->finish(row.seq, Finish::kStop);
    }
  }

  void deliver_ended() {
    bool any = false;
    for (const SeqId seq : r_->scheduler->ended()) {
      const auto found = owners_.find(seq.value);
      if (found == owners_.end()) continue;  // delivered already
      const Owner owner = found->second;
      observer_.finished(owner.active->request.id(), owner.choice, steady_now(), *r_->scheduler->find(seq));
      any = true;
    }
    if (!any) return;
    publish();  // who gets a last event finds its blocks freed in stats()
    for (const SeqId seq : r_->scheduler->ended()) {
      const auto found = owners_.find(seq.value);
      if (found == owners_.end()) continue;
      const Owner owner = found->second;
      const Sequence* sequence = r_->scheduler->find(seq);
      owner.active->request.finish(owner.choice, sequence->finish, failure_, sequence, &r_->sampling->at(seq));
      owners_.erase(found);
      r_->sampling->drop(seq);
      if (owner.active->request.done()) forget(owner.active->request.id());
    }
  }

  void forget(RequestId id) {
    active_.erase(id.value);
    const std::lock_guard lock(mutex_);
    if (--open_requests_ == 0) idle_.notify_all();
  }

  void trace_kv() {
    if (!observer_.tracing()) return;
    r_->kv->take_events(kv_events_);
    observer_.kv(kv_events_);
  }

  void publish() {
    const SchedulerCounters& scheduled = r_->scheduler->counters();
    const KvCounters kv = r_->kv->counters();
    EngineStats stats = observer_.counted();
    stats.running = r_->scheduler->num_running();
    stats.waiting = r_->scheduler->num_waiting();
    waiting_.store(stats.waiting);
    stats.blocks_total = kv.blocks_total;
    stats.blocks_used = kv.blocks_total - kv.blocks_free;
    stats.blocks_cached = kv.blocks_cached;
    const KvUsage usage = r_->kv->usage();
    const std::uint64_t place = r_->store->groups().page_bytes / r_->report.block_tokens;  // of one token in one group
    stats.kv_reserved_bytes = usage.reserved * place;
    stats.kv_used_bytes = usage.used * place;
    stats.kv_external_waste_bytes = usage.external * place;
    stats.kv_copies = kv.copies, stats.kv_moves = kv.moved_runs;
    stats.host_slots_total = kv.host_total;
    stats.host_slots_used = kv.host_total - kv.host_free;
    stats.steps = scheduled.steps;
    stats.computed_tokens = scheduled.computed_tokens;
    stats.prompt_tokens = scheduled.prompt_tokens;
    stats.admitted = scheduled.admitted;
    stats.preemptions = scheduled.preempted;
    stats.preemptions_swap = scheduled.swapped;
    stats.preemptions_recompute = scheduled.preempted - scheduled.swapped;
    stats.trace_lost = observer_.trace_lost();
    stats_.store(stats);
  }

  std::unique_ptr<EngineResources> r_;
  std::uint32_t max_queued_;

  // Shared with callers, under mutex_ unless atomic.
  mutable std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::optional<Error> broken_;
  std::vector<Mail> inbox_;
  std::vector<RequestId> aborts_;
  std::vector<std::promise<Result<>>*> resets_;  // their callers wait
  bool abort_all_ = false;
  bool draining_ = false;
  std::uint64_t last_request_ = 0;
  std::uint64_t open_requests_ = 0;
  std::atomic<bool> has_mail_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> waiting_{0};
  Published<EngineStats> stats_;

  // The engine thread's own.
  std::unordered_map<std::uint64_t, std::unique_ptr<Active>> active_;  // by RequestId
  std::unordered_map<std::uint64_t, Owner> owners_;                    // by SeqId
  std::uint64_t last_seq_ = 0;
  bool broke_ = false;
  Error failure_{ErrorCode::kInternal,
                 "the model's output was not a number (a damaged model file, or activations out of range)", ""};
  std::mt19937_64 seeds_{std::random_device{}()};
  StepPlan plan_;
  StepResult result_;
  std::vector<BatchRow> batch_;  // like plan_.rows
  KvEvents kv_events_;
  Observer observer_;

  std::optional<BackgroundPrefault> prefault_;
  std::thread thread_;                               // it starts when all else is there
  std::unique_ptr<BackgroundPackCheck> pack_check_;  // nullptr: there is nothing to check
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::load(const EngineConfig& config, const Progress& progress) {
  OCTAVO_TRY(std::unique_ptr<EngineResources> resources, load_resources(config, progress));
  OCTAVO_TRY(std::unique_ptr<TraceWriter> trace, open_trace(config, resources->report));
  return std::unique_ptr<Engine>(std::make_unique<LocalEngine>(std::move(resources), std::move(trace), config));
}

}  // namespace octavo
