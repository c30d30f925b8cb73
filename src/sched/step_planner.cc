#include "sched/step_planner.h"

#include <algorithm>

#include "base/check.h"

namespace octavo {

void StepPlanner::make(std::span<Sequence* const> running, std::span<Sequence* const> waiting, std::uint32_t budget,
                       StepPlan& plan) {
  plan_ = &plan;
  running_ = running, survivors_ = running.size(), cursor_ = 0;
  const auto floor = static_cast<std::uint32_t>(std::max<std::size_t>(running.size(), 1));
  budget_ = std::min(std::max(budget, floor), config_.max_num_batched_tokens);
  admitted_.clear();
  take_floor();
  spend(waiting);
  for (const Sequence* v : running_.subspan(survivors_)) {
    const bool saved = kv_.swapped(v->id);
    plan.preempted.push_back({v->id, saved ? 0 : v->computed, saved ? v->computed : 0});
  }
}

void StepPlanner::take_floor() {
  for (std::size_t i = 0; i < survivors_; ++i) {
    const Sequence& q = *running_[i];
    while (i < survivors_ && !kv_.grow(q.id, {q.computed + 1})) preempt_last();
  }
}

void StepPlanner::spend(std::span<Sequence* const> waiting) {
  bool admits = config_.batching == Batching::kContinuous || running_.empty();
  std::size_t next = 0;
  while (true) {
    const bool more_running = cursor_ < survivors_, more_waiting = admits && next < waiting.size();
    if (more_waiting && (!more_running || waiting[next]->rank < running_[cursor_]->rank)) {
      admits = start(*waiting[next++]);
    } else if (more_running) {
      extend(*running_[cursor_++]);
    } else {
      return;
    }
  }
}

void StepPlanner::extend(const Sequence& q) {
  Pos end{q.computed + chunk(q.todo(), survivors_ - cursor_)};
  if (!kv_.grow(q.id, end)) {
    end = kv_.reach(q.id, end);
    if (!kv_.grow(q.id, end)) end = kv_.owned(q.id, end);
  }
  OCTAVO_CHECK(end.value > q.computed, "the floor was taken");
  append_row(q, q.computed, end.value - q.computed);
}

/// False: neither this one nor any behind it starts in this step.
bool StepPlanner::start(const Sequence& q) {
  if (survivors_ < running_.size() && running_[survivors_]->rank < q.rank) return false;  // a victim comes first
  const Sequence* parent = parent_of(q);
  if (parent != nullptr && parent->processed < parent->prompt_tokens) return true;  // soon there is something to share
  const KvMark mark = kv_.mark();
  const std::size_t survivors = survivors_;
  Admission admission{q.id, 0, 0, 0, q.preemptions + q.failures > 0 ? 1U : 0U};
  if (!make_room(q, admission)) {
    kv_.rewind(mark);
    survivors_ = survivors;
    return false;
  }
  const std::uint32_t computed = admission.cached_tokens + admission.forked_tokens;
  // A static batch gives out its seats at once; who gets no token now gets some in the next steps. Nor does one that is
  // being loaded.
  const std::uint32_t count = admission.restored_tokens > 0 ? 0 : chunk(q.length() - computed, survivors_ - cursor_);
  if (count > 0 && !kv_.grow(q.id, {computed + count})) {
    kv_.rewind(mark);
    survivors_ = survivors;
    return false;
  }
  plan_->admitted.push_back(admission);
  admitted_.push_back(&q);
  if (count > 0) append_row(q, computed, count);
  return true;
}

/// A seat, a token and blocks for all that is known, if need be at the cost of those that rank behind it.
bool StepPlanner::make_room(const Sequence& q, Admission& admission) {
  while (true) {
    if (has_seat()) {
      const bool has_token = budget_ > survivors_ - cursor_ || config_.batching == Batching::kStatic;
      if (!has_token) return false;  // nobody is preempted for a token: it waits for the next step
      if (take_room(q, admission)) return true;
    }
    if (survivors_ == cursor_ || !policy_.may_preempt(q, *running_[survivors_ - 1])) return false;
    preempt_last();
  }
}

bool StepPlanner::take_room(const Sequence& q, Admission& admission) {
  const std::uint32_t spare = spare_blocks();
  if (kv_.swapped(q.id)) {
    admission.restored_tokens = q.saved;
    return kv_.swap_in(q.id, q.length(), spare);
  }
  if (const Sequence* parent = parent_of(q)) {
    const Pos shared{std::min(parent->prompt_tokens, q.length() - 1)};
    if (parent->state == SeqState::kRunning && kv_.can_fork(parent->id, shared)) {
      admission.forked_tokens = shared.value;
      return kv_.fork(parent->id, q.id, shared, q.length(), spare);
    }
  }
  // Without a row in this plan it would not learn that the row failed which fills what it found.
  const bool has_row = budget_ > survivors_ - cursor_;
  const PrefixHit hit = q.limits.prompt_logits || !has_row ? PrefixHit{} : kv_.lookup(q.tokens());
  admission.cached_tokens = hit.num_tokens;
  return kv_.admit(q.id, q.tokens(), hit, spare);
}

/// Whom `q` may fork from. A batch that closes at its start has no time to wait for it, and where no KV is kept there
/// is nothing to share.
const Sequence* StepPlanner::parent_of(const Sequence& q) const {
  if (!q.parent || config_.batching == Batching::kStatic || config_.discard_kv_after_sample) return nullptr;
  const auto found = sequences_.find(q.parent->value);
  return found == sequences_.end() || found->second.state == SeqState::kFinished ? nullptr : &found->second;
}

void StepPlanner::append_row(const Sequence& q, std::uint32_t begin, std::uint32_t count) {
  const std::uint32_t end = begin + count;
  kv_.settle(q.id, q.tokens(), {end});

  StepRow row{};
  row.seq = q.id;
  row.first_pos = {begin};
  row.tokens_begin = static_cast<std::uint32_t>(plan_->tokens.size());
  row.num_tokens = count;
  row.num_samples = end == q.length() && q.outputs() < q.limits.max_new_tokens ? 1 : 0;
  row.num_logits = row.num_samples;
  if (q.limits.prompt_logits && q.logits_given < q.prompt_tokens) {  // no outputs yet
    row.num_logits = end - std::min(end, std::max(begin, q.logits_given));
  }
  row.num_prompt = std::min(end, q.prompt_tokens) - std::min(begin, q.prompt_tokens);
  plan_->rows.push_back(row);

  plan_->tokens.insert(plan_->tokens.end(), q.known.begin() + begin, q.known.begin() + end);
  for (std::uint32_t g = 0; g < plan_->num_groups; ++g) {
    const TableView t = kv_.table(q.id, {g});
    const std::uint32_t pages =
        (end + plan_->block_tokens - 1) / plan_->block_tokens - t.first_page;  // of those it has
    plan_->tables.push_back({t.first_page, static_cast<std::uint32_t>(plan_->blocks.size()), pages});
    plan_->blocks.insert(plan_->blocks.end(), t.blocks.begin(), t.blocks.begin() + pages);
  }
  budget_ -= count;
}

void StepPlanner::preempt_last() {
  const Sequence& victim = *running_[--survivors_];
  if (!swaps(victim) || !kv_.swap_out(victim.id)) kv_.release(victim.id);
}

bool StepPlanner::swaps(const Sequence& victim) const {
  if (config_.preemption != PreemptionMode::kAuto) return config_.preemption == PreemptionMode::kSwap;
  const std::uint64_t there_and_back = 2 * config_.swap_ns_per_block * kv_.blocks_for(victim.computed);
  return there_and_back < config_.recompute_ns_per_token * victim.computed;
}

/// What a newcomer must leave alone: blocks that others still need for what they know, and the watermark.
std::uint32_t StepPlanner::spare_blocks() const {
  if (survivors_ + admitted_.size() == 0) return 0;
  std::uint32_t spare = config_.watermark_blocks;
  for (const Sequence* q : running_.first(survivors_)) {
    if (q->todo() > 1) spare += kv_.missing(q->id, q->length());
  }
  for (const Sequence* q : admitted_) spare += kv_.missing(q->id, q->length());
  return spare;
}

std::uint32_t StepPlanner::chunk(std::uint32_t todo, std::size_t reserved) const {
  const auto left = budget_ - static_cast<std::uint32_t>(std::min<std::size_t>(budget_, reserved));
  const std::uint32_t threshold = config_.long_prefill_token_threshold;
  return std::min({todo, left, threshold == 0 ? todo : threshold});
}

}  // namespace octavo
