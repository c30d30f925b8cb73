#include "sched/scheduler.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kv/block_hash.h"
#include "sched/step_planner.h"

namespace octavo {
namespace {

bool by_rank(const Sequence* a, const Sequence* b) { return a->rank < b->rank; }

}  // namespace

struct Scheduler::State {
  State(const SchedulerConfig& c, const Policy& p, KvManager& k)
      : config(c), policy(p), kv(k), planner(config, policy, kv, seqs) {}

  SchedulerConfig config;
  const Policy& policy;
  KvManager& kv;
  Sequences seqs;
  StepPlanner planner;
  std::vector<Sequence*> running, waiting;  // by rank
  std::vector<SeqId> ended;                 // since the last committed plan
  StepId step;
  SchedulerCounters counters;

  Sequence* find(SeqId id) {
    const auto it = seqs.find(id.value);
    return it == seqs.end() ? nullptr : &it->second;
  }

  [[nodiscard]] Refusal refusal(std::uint64_t prompt_tokens, const SeqLimits& limits) const {
    const std::uint64_t longest = prompt_tokens + limits.max_new_tokens;
    const std::uint64_t held = longest - std::min(limits.max_new_tokens, 1U);  // the last token's KV is never needed
    if (longest > config.max_model_len) return {Refusal::Why::kTooLong, longest, config.max_model_len};
    if (!kv.can_ever_hold(static_cast<std::uint32_t>(held))) return {Refusal::Why::kNeverFits, held, kv.longest()};
    if (waiting.size() < config.max_queued) return {};
    return {Refusal::Why::kQueueFull, waiting.size() + 1, config.max_queued};
  }

  Sequence& enroll(SeqId id, const SeqLimits& limits, std::span<const TokenId> prompt, Micros now) {
    Sequence& q = seqs[id.value];
    q.id = id, q.limits = limits, q.arrival = now;
    q.prompt_tokens = static_cast<std::uint32_t>(prompt.size());
    const std::size_t longest = prompt.size() + limits.max_new_tokens;
    q.known.reserve(longest);
    q.known.assign(prompt.begin(), prompt.end());
    if (kv.config().prefix_caching) q.chain.reserve(longest / kv.config().block_tokens);
    return q;
  }

  static void enter(std::vector<Sequence*>& queue, Sequence& q) {
    queue.insert(std::ranges::upper_bound(queue, &q, by_rank), &q);
  }

  void wait(Sequence& q) {
    q.state = SeqState::kWaiting;
    q.computed = q.processed = 0;
    q.rank = policy.rank(q);
    enter(waiting, q);
  }

  void end(Sequence& q, Finish why) {
    if (q.state == SeqState::kFinished) return;
    kv.release(q.id);
    std::erase(q.state == SeqState::kRunning ? running : waiting, &q);
    q.state = SeqState::kFinished, q.finish = why;
    ended.push_back(q.id);
    ++counters.finished;
  }

  /// Once it is recomputed; who fails again ends.
  void fail(Sequence& q) {
    kv.unpublish(q.id, {q.processed});
    if (++q.failures > 1) return end(q, Finish::kError);
    kv.release(q.id);
    std::erase(running, &q);
    wait(q);
  }

  /// What the host keeps of it is worthless: it computes again.
  void forget_saved(Sequence& q) {
    ++counters.failed_moves;
    kv.release(q.id);
    q.saved = 0;
    if (q.state != SeqState::kRunning) return;  // the save failed; else the load
    std::erase(running, &q);
    wait(q);
  }

  void extend_chain(Sequence& q) const {
    if (!kv.config().prefix_caching) return;
    const std::uint32_t size = kv.config().block_tokens;
    while ((q.chain.size() + 1) * size <= q.known.size()) {
      const auto tokens = std::span(q.known).subspan(q.chain.size() * size, size);
      q.chain.push_back(child_hash(q.chain.empty() ? q.root : q.chain.back(), tokens));
    }
  }

  void apply(Sequence& q, const RowResult& row, std::span<const TokenId> sampled) {
    if (row.end == RowEnd::kFailed) return fail(q);
    OCTAVO_CHECK(row.computed_end.value == q.computed, "a row that did not fail was computed whole");
    q.processed = q.computed;
    q.logits_given = std::max(q.logits_given, std::min(q.processed, q.prompt_tokens));
    kv.processed(q.id, row.computed_end);
    const bool caught_up = q.processed == q.length();
    OCTAVO_CHECK(sampled.empty() || caught_up, "only a row that ends at the last known token samples");
    q.known.insert(q.known.end(), sampled.begin(), sampled.end());
    extend_chain(q);
    counters.sampled_tokens += sampled.size();
    if (row.end == RowEnd::kStopped) return end(q, Finish::kStop);
    if (caught_up && q.outputs() >= q.limits.max_new_tokens) return end(q, Finish::kLength);
    if (config.discard_kv_after_sample && caught_up) {
      kv.release(q.id);
      q.computed = q.processed = 0;
    }
  }
};

Scheduler::Scheduler(const SchedulerConfig& config, const Policy& policy, KvManager& kv)
    : state_(std::make_unique<State>(config, policy, kv)) {
  OCTAVO_CHECK(config.max_num_seqs > 0 && config.max_num_batched_tokens >= config.max_num_seqs,
               "every running sequence gets a token of the budget");
  OCTAVO_CHECK(config.max_num_seqs <= kv.config().max_seqs, "every running sequence has a seat");
  OCTAVO_CHECK(config.max_model_len <= kv.config().max_model_len, "every table has its pages");
  const std::uint32_t threshold = config.long_prefill_token_threshold;
  OCTAVO_CHECK(std::min(config.max_num_batched_tokens, threshold == 0 ? ~0U : threshold) <= kv.config().max_step_tokens,
               "a window keeps what one step computes");
}
Scheduler::~Scheduler() = default;

Refusal Scheduler::add(SeqId id, const SeqLimits& limits, std::span<const TokenId> prompt, Micros now) {
  State& s = *state_;
  OCTAVO_CHECK(!prompt.empty() && s.find(id) == nullptr, "a sequence is new and has a prompt");
  if (const Refusal no = s.refusal(prompt.size(), limits); no.why != Refusal::Why::kNone) return no;
  Sequence& q = s.enroll(id, limits, prompt, now);
  if (s.kv.config().prefix_caching) q.root = root_hash(s.config.model_fingerprint, limits.cache_salt);
  s.extend_chain(q);
  s.wait(q);
  return {};
}

Refusal Scheduler::fork(SeqId id, SeqId parent, const SeqLimits& limits, Micros now) {
  State& s = *state_;
  const Sequence* p = s.find(parent);
  OCTAVO_CHECK(p != nullptr && p->state != SeqState::kFinished && s.find(id) == nullptr, "new, from one that lives");
  if (const Refusal no = s.refusal(p->prompt_tokens, limits); no.why != Refusal::Why::kNone) return no;
  Sequence& q = s.enroll(id, limits, std::span(p->known).first(p->prompt_tokens), now);
  q.parent = parent;
  if (s.kv.config().prefix_caching) {
    q.root = p->root;
    const auto full = static_cast<std::ptrdiff_t>(p->prompt_tokens / s.kv.config().block_tokens);
    q.chain.assign(p->chain.begin(), p->chain.begin() + full);
  }
  s.wait(q);
  return {};
}

void Scheduler::finish(SeqId id, Finish why) {
  if (Sequence* q = state_->find(id)) state_->end(*q, why);
}

void Scheduler::expire(Micros now) {
  State& s = *state_;
  for (std::vector<Sequence*>* queue : {&s.running, &s.waiting}) {
    for (std::size_t i = queue->size(); i > 0; --i) {
      if (Sequence& q = *(*queue)[i - 1]; q.limits.deadline <= now) s.end(q, Finish::kDeadline);
    }
  }
}

bool Scheduler::schedule(StepPlan& plan, std::uint32_t budget) {
  State& s = *state_;
  clear(plan);
  plan.rows.reserve(s.config.max_num_seqs), plan.tokens.reserve(s.config.max_num_batched_tokens);
  plan.tables.reserve(s.config.max_num_seqs * s.kv.config().groups.size());
  plan.blocks.reserve(s.kv.config().num_blocks);  // more only where tables share
  plan.step = {s.step.value + 1};
  plan.num_groups = static_cast<std::uint32_t>(s.kv.config().groups.size());
  plan.block_tokens = s.kv.config().block_tokens;
  plan.finished = s.ended;
  s.kv.begin(plan.ops);
  s.planner.make(s.running, s.waiting, budget, plan);
  if (!plan.empty()) return true;
  s.kv.abandon();
  return false;
}

void Scheduler::commit(const StepPlan& plan) {
  State& s = *state_;
  SchedulerCounters& c = s.counters;
  for (const Preemption& p : plan.preempted) {
    Sequence& q = *s.find(p.seq);
    std::erase(s.running, &q);
    s.wait(q);
    q.saved = p.saved_tokens;
    ++q.preemptions, ++c.preempted, c.swapped += p.saved_tokens > 0, c.lost_tokens += p.lost_tokens;
  }
  for (const Admission& a : plan.admitted) {
    Sequence& q = *s.find(a.seq);
    std::erase(s.waiting, &q);
    State::enter(s.running, q);
    q.state = SeqState::kRunning, q.saved = 0;
    q.computed = q.processed = a.cached_tokens + a.forked_tokens + a.restored_tokens;
    if (a.resumed == 0) {
      q.cached_tokens = a.cached_tokens + a.forked_tokens;
      const bool looked_up = s.kv.config().prefix_caching && a.forked_tokens == 0 && !q.limits.prompt_logits;
      if (looked_up) c.queried_tokens += q.prompt_tokens;
    }
    ++c.admitted, c.cached_tokens += a.cached_tokens;
    c.forked_tokens += a.forked_tokens, c.restored_tokens += a.restored_tokens;
  }
  for (const StepRow& r : plan.rows) {
    s.find(r.seq)->computed += r.num_tokens;
    c.computed_tokens += r.num_tokens, c.prompt_tokens += r.num_prompt;
  }
  for (SeqId id : plan.finished) s.seqs.erase(id.value);
  ++c.steps, c.rows += plan.rows.size();
  s.ended.clear(), s.step = plan.step;
  s.kv.commit();
}

void Scheduler::abandon() { state_->kv.abandon(); }

void Scheduler::apply(const StepResult& result) {
  State& s = *state_;
  for (const SeqId id : result.failed_moves) {
    Sequence* q = s.find(id);
    if (q != nullptr && q->state != SeqState::kFinished && (q->saved > 0 || q->state == SeqState::kRunning)) {
      s.forget_saved(*q);
    }
  }
  for (const RowResult& row : result.rows) {
    Sequence* q = s.find(row.seq);
    if (q == nullptr || q->state != SeqState::kRunning) continue;  // it ended while the step ran
    s.apply(*q, row, std::span(result.tokens).subspan(row.tokens_begin, row.num_tokens));
  }
}

bool Scheduler::has_work() const {
  return !state_->running.empty() || !state_->waiting.empty() || !state_->ended.empty();
}
std::uint32_t Scheduler::num_running() const { return static_cast<std::uint32_t>(state_->running.size()); }
std::uint32_t Scheduler::num_waiting() const { return static_cast<std::uint32_t>(state_->waiting.size()); }
std::span<const Sequence* const> Scheduler::running() const { return state_->running; }
std::span<const Sequence* const> Scheduler::waiting() const { return state_->waiting; }
const Sequence* Scheduler::find(SeqId id) const { return state_->find(id); }
std::span<const SeqId> Scheduler::ended() const { return state_->ended; }
const SchedulerCounters& Scheduler::counters() const { return state_->counters; }

std::uint64_t Scheduler::state_hash() const {
  const State& s = *state_;
  std::uint64_t hash = s.kv.state_hash();
  const auto mix = [&](std::uint64_t v) { hash = (hash ^ v) * 0x100000001B3U, hash ^= hash >> 29; };
  mix(s.step.value), mix(s.seqs.size());
  for (const auto* queue : {&s.running, &s.waiting}) {
    mix(queue->size());
    for (const Sequence* q : *queue) {
      mix(q->id.value), mix(static_cast<std::uint64_t>(q->state)), mix(q->computed), mix(q->processed);
      mix(q->saved), mix(q->logits_given), mix(q->cached_tokens), mix(q->preemptions), mix(q->failures);
      mix(q->chain.size());
      for (TokenId t : q->known) mix(static_cast<std::uint64_t>(t.value));
    }
  }
  for (SeqId id : s.ended) mix(id.value);
  return hash;
}

}  // namespace octavo
