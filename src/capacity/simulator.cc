#include "capacity/simulator.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace octavo {
namespace {

constexpr std::size_t kMostMoments = 1024;
constexpr double kPerMilli = 1e6;      // ns
constexpr std::int32_t kAnyToken = 7;  // what nobody looks at

TokenId low(std::uint64_t id) { return {static_cast<std::int32_t>(id & 0x3fffffffU)}; }
TokenId high(std::uint64_t id) { return {static_cast<std::int32_t>(id >> 30U & 0x3fffffffU)}; }

/// A prompt that shares its first blocks with those of equal ids, and nothing beyond them with anybody: two tokens of
/// each block and of what follows tell.
void write_prompt(const PlannedRequest& request, std::uint32_t block, std::uint64_t own, std::vector<TokenId>& out) {
  out.assign(request.prompt_tokens, TokenId{kAnyToken});
  const auto mark = [&](std::uint64_t at, std::uint64_t id) {
    if (at + 1 < out.size()) out[at] = low(id), out[at + 1] = high(id);
  };
  std::uint64_t at = 0;
  for (const std::uint64_t id : request.prefix_ids) {
    if (at + block > out.size()) break;  // only whole blocks are shared
    mark(at, id);
    at += block;
  }
  mark(at, ~own);
}

}  // namespace

Simulator::Simulator(const Simulation& what)
    : what_(what),
      policy_(make_policy(what.engine)),
      kv_(kv_config(what.engine, what.facts)),
      scheduler_(scheduler_config(what.engine, what.facts), *policy_, kv_),
      pacer_(StepTime(what.facts.costs, what.price.counter().windows()), budget_limits(what.engine, what.facts),
             what.engine.max_num_seqs) {}

void Simulator::run(const Workload& workload) {
  if (workload.requests.empty()) return;
  started_ = now_ = static_cast<double>(workload.requests.front().arrival.count()) * 1e3;
  for (;;) {
    take_arrivals(workload);
    if (scheduler_.has_work() && step()) continue;
    close_ended();
    if (next_ >= workload.requests.size()) break;
    if (workload.concurrency) continue;
    const double arrival = static_cast<double>(workload.requests[next_].arrival.count()) * 1e3;
    idle_ += std::max(arrival - now_, 0.0);
    now_ = std::max(now_, arrival);
  }
}

void Simulator::take_arrivals(const Workload& workload) {
  const auto& requests = workload.requests;
  while (next_ < requests.size()) {
    const double arrival = workload.concurrency ? now_ : static_cast<double>(requests[next_].arrival.count()) * 1e3;
    if (arrival > now_ || (workload.concurrency && open_.size() >= *workload.concurrency)) return;
    submit(workload, static_cast<std::uint32_t>(next_++), arrival);
  }
}

void Simulator::submit(const Workload& workload, std::uint32_t index, double arrival) {
  const PlannedRequest& request = workload.requests[index];
  const SeqId id{++last_seq_};
  write_prompt(request, workload.prefix_block_tokens, id.value, prompt_);
  SeqLimits limits;
  limits.max_new_tokens = request.output_tokens;
  const Micros at(static_cast<std::int64_t>(arrival / 1e3));
  switch (scheduler_.add(id, limits, prompt_, at).why) {
    case Refusal::Why::kNone: break;
    case Refusal::Why::kQueueFull: ++turned_away_; return;
    case Refusal::Why::kTooLong:
    case Refusal::Why::kNeverFits: ++never_fit_; return;
  }
  open_.emplace(id.value, Answer{index, arrival, 0, 0, 0, scheduler_.counters().steps, false});
}

bool Simulator::step() {
  const std::uint32_t budget =
      std::clamp(pacer_.budget(scheduler_, kv_, now()), scheduler_.num_running(), what_.facts.max_num_batched_tokens);
  if (!scheduler_.schedule(plan_, budget)) return false;
  scheduler_.commit(plan_);
  for (const Admission& admission : plan_.admitted) {
    Answer& answer = open_.at(admission.seq.value);
    if (admission.resumed != 0) continue;
    queue_.add((now_ - answer.arrival) / kPerMilli);
    if (scheduler_.counters().steps > answer.seen_step + 1) ++queued_;
  }
  for (const Preemption& preemption : plan_.preempted) {
    Answer& answer = open_.at(preemption.seq.value);
    preempted_ += answer.preempted ? 0 : 1;
    answer.preempted = true;
  }
  const PricedStep price = plan_.rows.empty() && plan_.ops.loads.empty() ? PricedStep{} : what_.price.of(plan_);
  compute(price);
  pacer_.observe(plan_, Nanos(price.run()));
  scheduler_.apply(result_);
  gauge(price.total());
  close_ended();
  now_ += price.overhead;
  steps_ += plan_.rows.empty() ? 0 : 1;
  return true;
}

void Simulator::compute(const PricedStep& price) {
  now_ += price.run();
  spent_.weights += price.weights, spent_.head += price.head, spent_.attention += price.attention;
  spent_.overhead += price.overhead, spent_.bandwidth += price.bandwidth;
  result_.clear();
  result_.step = plan_.step;
  for (const StepRow& row : plan_.rows) {
    result_.rows.push_back(
        {row.seq, row.end(), static_cast<std::uint32_t>(result_.tokens.size()), row.num_samples, RowEnd::kGoesOn});
    if (row.num_samples == 0) continue;
    result_.tokens.push_back({kAnyToken});
    Answer& answer = open_.at(row.seq.value);
    if (answer.first == 0) {
      answer.first = now_;
      ttft_.add((now_ - answer.arrival) / kPerMilli);
    } else {
      itl_.add((now_ - answer.last) / kPerMilli);
    }
    answer.last = now_;
  }
}

void Simulator::close_ended() {
  for (const SeqId id : scheduler_.ended()) {
    const auto found = open_.find(id.value);
    if (found == open_.end()) continue;
    const Answer& a = found->second;
    const Sequence& sequence = *scheduler_.find(id);
    const double ttft = (a.first - a.arrival) / kPerMilli, e2e = (a.last - a.arrival) / kPerMilli;
    const double tpot = sequence.outputs() > 1 ? (a.last - a.first) / kPerMilli / (sequence.outputs() - 1) : 0;
    e2e_.add(e2e);
    if (sequence.outputs() > 1) tpot_.add(tpot);
    const auto keeps = [](const auto& goal, double ms) { return !goal || ms <= static_cast<double>(goal->count()); };
    good_ += keeps(what_.goal.ttft, ttft) && keeps(what_.goal.tpot, tpot) && keeps(what_.goal.e2e, e2e) ? 1 : 0;
    prompt_tokens_ += sequence.prompt_tokens, output_tokens_ += sequence.outputs();
    ++finished_;
    ended_ = a.last;
    open_.erase(found);
  }
}

void Simulator::gauge(double duration) {
  std::uint64_t live = 0;
  for (const Sequence* s : scheduler_.running()) live += s->computed;
  const KvUsage usage = kv_.usage();
  const double used = static_cast<double>(usage.used) * what_.token_place_bytes;
  const double reserved = static_cast<double>(usage.reserved) * what_.token_place_bytes;
  live_.add(static_cast<double>(live), duration);
  running_.add(scheduler_.num_running(), duration);
  used_.add(used, duration);
  reserved_.add(reserved, duration);
  note(used, reserved);
  reserved_ns_ += reserved * duration;
  unused_ns_ += (reserved - used) * duration;
  if (scheduler_.num_waiting() == 0) return;
  const KvCounters kv = kv_.counters();
  waiting_ns_ += duration;
  free_while_waiting_ += duration * kv.blocks_free / std::max(kv.blocks_total, 1U);
  if (scheduler_.num_running() >= what_.engine.max_num_seqs) {
    waited_for_seats_ += duration;
  } else if (kv_.blocks_for(scheduler_.waiting().front()->length()) > kv.blocks_free) {
    waited_for_memory_ += duration;
  }
}

/// Every so-manieth step; where that gets too many, every second of them stays.
void Simulator::note(double used, double reserved) {
  if (steps_ % note_every_ != 0) return;
  timeline_.push_back({(now_ - started_) / 1e9, scheduler_.num_running(), scheduler_.num_waiting(), used, reserved});
  if (timeline_.size() < kMostMoments) return;
  for (std::size_t i = 0; i < timeline_.size() / 2; ++i) timeline_[i] = timeline_[2 * i];
  timeline_.resize(timeline_.size() / 2);
  note_every_ *= 2;
}

SimulateReport Simulator::report() const {
  SimulateReport out;
  const double ns = std::max(ended_ - started_, 1.0), seconds = ns / 1e9;
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  out.requests = finished_, out.steps = steps_;
  out.never_fit = never_fit_, out.turned_away = turned_away_;
  out.seconds = finished_ > 0 ? seconds : 0;
  out.ttft_ms = ttft_.spectrum(), out.tpot_ms = tpot_.spectrum(), out.itl_ms = itl_.spectrum();
  out.e2e_ms = e2e_.spectrum(), out.queue_ms = queue_.spectrum();
  out.live_tokens = live_.spectrum(), out.running = running_.spectrum();
  out.timeline = timeline_;
  out.kv_used_bytes = used_.spectrum(), out.kv_reserved_bytes = reserved_.spectrum();
  out.output_tokens_per_s = static_cast<double>(output_tokens_) / seconds;
  out.total_tokens_per_s = static_cast<double>(output_tokens_ + prompt_tokens_) / seconds;
  out.requests_per_s = static_cast<double>(finished_) / seconds;
  const double asked = static_cast<double>(finished_ + never_fit_ + turned_away_);
  out.good_share = share(static_cast<double>(good_), asked);
  out.goodput_per_s = static_cast<double>(good_) / seconds;
  out.queued_share = share(static_cast<double>(queued_), asked);
  out.preempted_share = share(static_cast<double>(preempted_), asked);
  const SchedulerCounters& counted = scheduler_.counters();
  out.preemptions = counted.preempted;
  out.recomputed_tokens = counted.lost_tokens;
  out.prefix_hit_share = share(static_cast<double>(counted.cached_tokens), static_cast<double>(prompt_tokens_));
  out.internal_waste = share(unused_ns_, reserved_ns_);
  out.free_while_waiting = share(free_while_waiting_, waiting_ns_);

  const double busy = spent_.total();
  out.weights_share = share(spent_.weights, busy), out.attention_share = share(spent_.attention, busy);
  out.head_share = share(spent_.head, busy), out.overhead_share = share(spent_.overhead, busy);
  out.idle_share = share(idle_, ns);
  out.memory_wait_share = share(waited_for_memory_, ns), out.seat_wait_share = share(waited_for_seats_, ns);
  out.bandwidth_share = share(spent_.bandwidth, busy);
  constexpr double kOften = 0.05;  // of the time
  out.limit = out.memory_wait_share > kOften ? "memory"
              : out.seat_wait_share > kOften ? "seats"
              : out.idle_share > kOften      ? "load"
              : out.bandwidth_share > 0.5    ? "bandwidth"
                                             : "compute";
  return out;
}

}  // namespace octavo
