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
  for (const Sequence* v : running_.subspan(survivors_)) plan.preempted.push_back({v->id, v->computed, 0});
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
  const std::uint32_t wanted = chunk(q.todo(), survivors_ - cursor_);
  const Pos end = kv_.reach(q.id, {q.computed + wanted});
  OCTAVO_CHECK(kv_.grow(q.id, end) && end.value > q.computed, "the floor was taken");
  append_row(q, q.computed, end.value - q.computed);
}

/// False: neither this one nor any behind it starts in this step.
bool StepPlanner::start(const Sequence& q) {
  if (survivors_ < running_.size() && running_[survivors_]->rank < q.rank) return false;  // a victim comes first
  PrefixHit hit;
  if (!make_room(q, hit)) return false;
  kv_.admit(q.id, q.tokens(), hit);
  plan_->admitted.push_back({q.id, hit.num_tokens, 0, q.preemptions + q.failures > 0 ? 1U : 0U, 0});
  admitted_.push_back(&q);
  // A static batch gives out its seats at once; who gets no token now gets some in the next steps.
  const std::uint32_t count = chunk(q.length() - hit.num_tokens, survivors_ - cursor_);
  if (count == 0) return true;
  OCTAVO_CHECK(kv_.grow(q.id, {hit.num_tokens + count}), "room was made");
  append_row(q, hit.num_tokens, count);
  return true;
}

/// A seat, a token and blocks for all that is known; `hit` is what of it is cached. What was preempted in vain is given
/// back.
bool StepPlanner::make_room(const Sequence& q, PrefixHit& hit) {
  const KvMark mark = kv_.mark();
  const std::size_t before = survivors_;
  while (true) {
    if (has_seat()) {
      const bool has_token = budget_ > survivors_ - cursor_ || config_.batching == Batching::kStatic;
      if (!has_token) break;  // nobody is preempted for a token: it waits for the next step
      hit = q.limits.prompt_logits ? PrefixHit{} : kv_.lookup(q.tokens());
      if (kv_.can_hold_now(q.length(), hit, spare_blocks())) return true;
    }
    if (survivors_ == cursor_ || !policy_.may_preempt(q, *running_[survivors_ - 1])) break;
    preempt_last();
  }
  kv_.rewind(mark);
  survivors_ = before;
  return false;
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
    plan_->tables.push_back(
        {t.first_page, static_cast<std::uint32_t>(plan_->blocks.size()), static_cast<std::uint32_t>(t.blocks.size())});
    plan_->blocks.insert(plan_->blocks.end(), t.blocks.begin(), t.blocks.end());
  }
  budget_ -= count;
}

void StepPlanner::preempt_last() { kv_.release(running_[--survivors_]->id); }

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
