// The blast test: thousands of random steps on tiny pools, everything checked after each of them.
// OCTAVO_BLAST_STEPS sets how many (default 24,000). Every seed runs in a process of its own, so a crash is a failure
// like any other: its arrivals are left out as long as it still fails, and what remains is printed. OCTAVO_BLAST_SEED
// replays one seed in this process, OCTAVO_BLAST_ARRIVALS=3,7 only those arrivals of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "support/shrink.h"
#include "support/toy_executor.h"

namespace octavo {
namespace {

using test::ToyExecutor;

struct Expected {
  std::vector<TokenId> prompt;
  std::optional<SeqId> parent;
  SeqLimits limits;
  bool aborted = false;
};

/// What a seed came to.
struct Tally {
  std::uint64_t steps = 0, moved_runs = 0, copies = 0;
  std::uint32_t arrivals = 0;
  SchedulerCounters scheduled;
};

using Arrivals = std::vector<std::uint32_t>;  // by number, ascending

class Blast {
 public:
  /// `only` these arrivals, and each of them said aloud.
  explicit Blast(std::uint32_t seed, std::optional<Arrivals> only = {})
      : seed_(seed), only_(std::move(only)), rng_(seed) {
    kv_config_.block_tokens = 1 + pick(2) * 15;  // blocks of one token make every step allocate
    kv_config_.groups.resize(1 + pick(3));
    for (std::size_t g = 0; g < kv_config_.groups.size(); ++g) {
      kv_config_.groups[g].window_tokens = g == 0 && chance(3, 4) ? 0 : pick(2) * (1 + pick(40));
    }
    kv_config_.memory = chance(3, 5) ? KvMemory::kPaged : chance(1, 2) ? KvMemory::kDynamic : KvMemory::kStatic;
    kv_config_.prefix_caching = kv_config_.memory == KvMemory::kPaged && chance(3, 5);
    kv_config_.chunk_tokens = 1 + pick(40);
    kv_config_.host_blocks = chance(1, 2) ? pick(60) : 0;
    kv_config_.events = true;
    kv_config_.max_seqs = 1 + pick(12);
    kv_config_.max_model_len = kv_config_.memory == KvMemory::kStatic ? 40 + pick(60) : 200;
    config_.max_num_seqs = kv_config_.max_seqs;
    config_.max_num_batched_tokens = config_.max_num_seqs + pick(chance(1, 2) ? 100 : 8);
    config_.long_prefill_token_threshold = chance(1, 3) ? 1 + pick(30) : 0;
    kv_config_.max_step_tokens = config_.max_num_batched_tokens;
    kv_config_.num_blocks = static_cast<std::uint32_t>(kv_config_.groups.size()) *
                                (2 + pick(chance(2, 3) ? 12 : 60) * 16 / kv_config_.block_tokens) +
                            1;
    config_.max_model_len = kv_config_.max_model_len;
    config_.max_queued = 10;
    config_.watermark_blocks = chance(1, 3) ? pick(8) : 0;
    config_.batching = chance(1, 4) ? Batching::kStatic : Batching::kContinuous;
    config_.discard_kv_after_sample = chance(1, 6);
    config_.model_fingerprint = "toy";
    const PreemptionMode modes[] = {PreemptionMode::kAuto, PreemptionMode::kRecompute, PreemptionMode::kSwap};
    config_.preemption = modes[pick(3)];
    config_.recompute_ns_per_token = 10, config_.swap_ns_per_block = pick(100);
    fails_ = chance(1, 5), moves_fail_ = chance(1, 2), refuses_ = chance(1, 4);
    const std::uint32_t policy = pick(5);
    if (policy < 2) policy_ = std::make_unique<Fcfs>();
    if (policy == 2) policy_ = std::make_unique<ShortestRemaining>(Micros{pick(3)});
    if (policy > 2) policy_ = std::make_unique<Priority>(Micros{pick(3) * 50});
    kv_ = std::make_unique<KvManager>(kv_config_);
    scheduler_ = std::make_unique<Scheduler>(config_, *policy_, *kv_);
    executor_ = std::make_unique<ToyExecutor>(kv_config_, *scheduler_);
    executor_->end_of = [this](const StepRow&) {
      if (fails_ && chance(1, 40)) return RowEnd::kFailed;
      return chance(1, 60) ? RowEnd::kStopped : RowEnd::kGoesOn;
    };
    executor_->move_fails = [this](const BlockMove&) { return moves_fail_ && chance(1, 8); };
  }

  /// Random arrivals for a while, then a drain. `tally` is up to date at every step: a crash may end it.
  void run(Tally& tally) {
    for (; tally.steps < 200 || scheduler_->has_work(); ++tally.steps) {
      now_ += Micros{1};
      // Steps and arrivals draw for themselves: with some arrivals left out, the rest stays what it was.
      draw_for(tally.steps);
      if (tally.steps < 150 && chance(1, 3)) arrive(tally.arrivals++);
      draw_for(tally.steps + (std::uint64_t{1} << 20));
      if (chance(1, 40)) abort_one();
      scheduler_->expire(now_);
      step();
      if (tally.steps > 20'000) ADD_FAILURE() << "somebody never finishes";
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(expected_.empty()) << "every request ends";
    EXPECT_EQ(kv_->counters().blocks_free, kv_->counters().blocks_total) << "drained pool = full pool";
    EXPECT_TRUE(kv_->reset_prefix_cache());
    EXPECT_EQ(kv_->counters().blocks_cached, 0U);
    tally.scheduled = scheduler_->counters();
    tally.moved_runs = kv_->counters().moved_runs, tally.copies = kv_->counters().copies;
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(rng_() % n); }
  bool chance(std::uint32_t yes, std::uint32_t of) { return pick(of) < yes; }
  void draw_for(std::uint64_t what) {
    rng_.seed(static_cast<std::uint32_t>(seed_ * 0x9E3779B97F4A7C15U + what * 7919));
  }

  void arrive(std::uint32_t number) {
    if (only_ && !std::ranges::binary_search(*only_, number)) return;
    Expected e;
    const std::uint32_t length = 1 + pick(chance(3, 4) ? 20 : 120);
    const std::int32_t family = static_cast<std::int32_t>(pick(3));  // few families: long common prefixes
    for (std::uint32_t i = 0; i < length; ++i) e.prompt.push_back({family + static_cast<std::int32_t>(i % 7)});
    if (chance(1, 2)) e.prompt.back().value = 49;
    e.limits.max_new_tokens = pick(100);
    e.limits.priority = static_cast<std::int32_t>(pick(7)) - 3;
    e.limits.prompt_logits = chance(1, 6);
    if (chance(1, 5)) e.limits.deadline = now_ + Micros{pick(200)};
    if (chance(1, 4)) e.limits.cache_salt = "salt";
    if (only_) {
      std::printf("arrival %u at %lld: %u tokens, max_new_tokens=%u, priority=%d%s%s\n", number,
                  static_cast<long long>(now_.count()), length, e.limits.max_new_tokens, e.limits.priority,
                  e.limits.prompt_logits ? ", prompt logits" : "", e.limits.cache_salt.empty() ? "" : ", salted");
    }
    const SeqId id{next_++};
    const std::uint32_t waiting = scheduler_->num_waiting();
    const Refusal refusal = scheduler_->add(id, e.limits, e.prompt, now_);
    if (refusal.why == Refusal::Why::kNone) {
      expected_[id] = e;
      for (std::uint32_t n = chance(1, 4) ? 1 + pick(3) : 0; n > 0; --n) fork(id, e);
    } else {
      EXPECT_GT(refusal.asked, refusal.limit);
      EXPECT_EQ(scheduler_->num_waiting(), waiting);
      EXPECT_EQ(scheduler_->find(id), nullptr);
    }
  }

  void fork(SeqId parent, Expected e) {
    e.parent = parent, e.limits.prompt_logits = false;
    forked_from_.insert(parent);
    const SeqId id{next_++};
    if (scheduler_->fork(id, parent, e.limits, now_).why == Refusal::Why::kNone) expected_[id] = e;
  }

  void abort_one() {
    if (expected_.empty()) return;
    const auto it = std::next(expected_.begin(), pick(static_cast<std::uint32_t>(expected_.size())));
    scheduler_->finish(it->first, Finish::kAbort);
    it->second.aborted = true;
  }

  void step() {
    const std::uint64_t before = scheduler_->state_hash();
    budget_ = chance(1, 3) ? pick(60) : config_.max_num_batched_tokens;
    const bool refused = refuses_ && chance(1, 10);
    if (refused) kv_->refuse_after(1 + pick(8));
    const bool any = scheduler_->schedule(plan_, budget_);
    kv_->refuse_after(0);
    if (!any) {
      EXPECT_EQ(scheduler_->state_hash(), before);
      EXPECT_TRUE(refused || !scheduler_->has_work()) << "work waits and nothing is done";
      return;
    }
    if (!refused && chance(1, 3)) {  // dropped without a trace, then made again, equal
      std::vector<std::byte> once, twice;
      serialize(plan_, once);
      scheduler_->abandon();
      EXPECT_EQ(scheduler_->state_hash(), before);
      ASSERT_TRUE(scheduler_->schedule(plan_, budget_));
      serialize(plan_, twice);
      EXPECT_EQ(once, twice);
      StepPlan copy;
      EXPECT_TRUE(deserialize(once, copy).ok());
    }
    check_plan(refused);
    for (SeqId id : plan_.finished) check_ended(id);
    scheduler_->commit(plan_);
    check_ownership();
    permute_rows();
    executor_->run(plan_, result_);
    if (testing::Test::HasFailure()) return;
    std::ranges::shuffle(result_.rows, rng_);
    scheduler_->apply(result_);
    check_ownership();
    check_events();
  }

  void check_plan(bool refused) {
    EXPECT_LE(plan_.tokens.size(), config_.max_num_batched_tokens);
    EXPECT_LE(plan_.tokens.size(), std::max(budget_, std::max(1U, scheduler_->num_running())));
    EXPECT_LE(plan_.rows.size(), config_.max_num_seqs);
    std::set<SeqId> served, preempted;
    for (const StepRow& r : plan_.rows) {
      served.insert(r.seq);
      const std::uint32_t threshold = config_.long_prefill_token_threshold;
      EXPECT_TRUE(threshold == 0 || r.num_tokens <= threshold);
    }
    for (const Preemption& p : plan_.preempted) EXPECT_TRUE(preempted.insert(p.seq).second);
    std::set<SeqId> admitted;
    for (const Admission& a : plan_.admitted) {
      const Sequence* q = scheduler_->find(a.seq);
      EXPECT_EQ(q->state, SeqState::kWaiting);
      EXPECT_FALSE(preempted.contains(a.seq));
      EXPECT_LT(a.cached_tokens + a.forked_tokens, q->length());
      EXPECT_EQ(a.restored_tokens, q->saved);
      EXPECT_TRUE(!q->limits.prompt_logits || a.cached_tokens == 0);
      EXPECT_TRUE(a.restored_tokens == 0 || !served.contains(a.seq));
      admitted.insert(a.seq);
    }
    // Nobody is overtaken: who ranks before a newcomer starts too, or runs, or waits for the one it forks from. So a
    // wait is bounded by what the ranks say (sched/policy.h), and by the running ones' lengths.
    for (const auto& [id, e] : expected_) {
      const Sequence* q = scheduler_->find(id);
      if (q->state != SeqState::kWaiting || admitted.contains(id)) continue;
      const Sequence* parent = e.parent ? scheduler_->find(*e.parent) : nullptr;
      if (parent != nullptr && parent->state != SeqState::kFinished && parent->processed < parent->prompt_tokens)
        continue;
      for (const SeqId other : admitted) EXPECT_TRUE(scheduler_->find(other)->rank < q->rank) << "overtaken";
    }
    if (refused) return;
    const bool closed = config_.batching == Batching::kStatic && scheduler_->num_running() > 0;
    EXPECT_TRUE(!closed || plan_.admitted.empty());
    std::uint32_t running = 0;
    for (const auto& [id, e] : expected_) {
      const Sequence* q = scheduler_->find(id);
      ASSERT_NE(q, nullptr);
      if (q->state != SeqState::kRunning) continue;
      ++running;
      EXPECT_NE(served.contains(id), preempted.contains(id)) << "who runs gets a token or is preempted";
    }
    EXPECT_EQ(running, scheduler_->num_running());
    EXPECT_LE(running - plan_.preempted.size() + plan_.admitted.size(), config_.max_num_seqs);
  }

  void permute_rows() {  // tables move along; tokens are tiled anew
    StepPlan shuffled = plan_;
    shuffled.rows.clear(), shuffled.tokens.clear(), shuffled.tables.clear();
    std::vector<std::size_t> order(plan_.rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::shuffle(order, rng_);
    for (std::size_t i : order) {
      const auto tokens = plan_.tokens_of(plan_.rows[i]);
      shuffled.rows.push_back(plan_.rows[i]);
      shuffled.rows.back().tokens_begin = static_cast<std::uint32_t>(shuffled.tokens.size());
      shuffled.tokens.insert(shuffled.tokens.end(), tokens.begin(), tokens.end());
      for (std::uint32_t g = 0; g < plan_.num_groups; ++g) shuffled.tables.push_back(plan_.table_of(i, {g}));
    }
    plan_ = shuffled;
  }

  /// The naive model: counts every block in every table, and compares.
  void check_ownership() {
    std::map<BlockId, std::uint32_t> owners;
    for (const auto& [id, e] : expected_) {
      const Sequence* q = scheduler_->find(id);
      if (q == nullptr) continue;
      EXPECT_TRUE(q->state == SeqState::kRunning || !kv_->holds(id)) << "who does not run holds nothing";
      for (std::uint32_t g = 0; g < kv_config_.groups.size(); ++g) {
        const TableView t = kv_->table(id, {g});
        if (q->state == SeqState::kRunning && q->computed > 0) {
          EXPECT_GE((t.first_page + t.blocks.size()) * kv_config_.block_tokens, q->computed);
        }
        for (BlockId b : t.blocks) {
          EXPECT_NE(b, kNullBlock);
          EXPECT_TRUE(++owners[b] == 1 || kv_config_.prefix_caching || e.parent || forked_from_.contains(id))
              << "without a cache and forks nothing is shared";
        }
        const bool run = kv_config_.memory != KvMemory::kPaged;
        for (std::size_t i = 1; run && i < t.blocks.size(); ++i)
          EXPECT_EQ(t.blocks[i].value, t.blocks[i - 1].value + 1);
      }
    }
    for (std::uint32_t b = 1; b < kv_config_.num_blocks; ++b) {
      EXPECT_EQ(kv_->owners({b}), owners.contains({b}) ? owners[{b}] : 0U) << "block " << b;
    }
    const std::vector<BlockId> free = kv_->free_list();
    EXPECT_EQ(std::set<BlockId>(free.begin(), free.end()).size(), free.size());
    for (BlockId b : free) EXPECT_FALSE(owners.contains(b));
    EXPECT_EQ(free.size() + owners.size(), kv_->counters().blocks_total);
    EXPECT_EQ(free.size(), kv_->counters().blocks_free);
    const KvUsage u = kv_->usage();
    EXPECT_EQ(u.reserved, owners.size() * kv_config_.block_tokens);
    EXPECT_LE(u.used, u.reserved);
    EXPECT_LE(u.external, free.size() * kv_config_.block_tokens);
  }

  /// Names rebuilt from events alone are those that the manager counts.
  void check_events() {
    kv_->take_events(events_);
    for (const KvEvent& e : events_.events) {
      EXPECT_EQ(e.number, ++last_event_);
      if (e.kind == KvEvent::Kind::kCleared) names_.clear();
      for (const BlockHash& hash : events_.hashes_of(e)) {
        const bool is_change = e.kind == KvEvent::Kind::kStored ? names_.insert({e.group, hash}).second
                                                                : names_.erase({e.group, hash}) == 1;
        EXPECT_TRUE(is_change);
      }
    }
    EXPECT_GE(names_.size(), kv_->counters().blocks_cached);
    EXPECT_LE(names_.size(),
              kv_->counters().blocks_cached + kv_->counters().blocks_total - kv_->counters().blocks_free);
  }

  void check_ended(SeqId id) {
    const Sequence* q = scheduler_->find(id);
    ASSERT_NE(q, nullptr);
    ASSERT_EQ(q->state, SeqState::kFinished);
    const Expected& e = expected_.at(id);
    const auto said = std::span(q->known).subspan(e.prompt.size());
    EXPECT_TRUE(std::ranges::equal(said, test::toy_output(e.prompt, said.size()))) << "a schedule changed an answer";
    switch (q->finish) {
      case Finish::kLength: EXPECT_EQ(said.size(), e.limits.max_new_tokens); break;
      case Finish::kStop: EXPECT_GE(said.size(), 1U); break;
      case Finish::kAbort: EXPECT_TRUE(e.aborted); break;
      case Finish::kDeadline: EXPECT_LE(e.limits.deadline, now_); break;
      case Finish::kError: EXPECT_GT(q->failures, 1U); break;
      case Finish::kNone: ADD_FAILURE() << "an end has a reason"; break;
    }
    if (e.limits.prompt_logits && (q->finish == Finish::kLength || q->finish == Finish::kStop)) {
      for (std::size_t p = 0; p < e.prompt.size(); ++p) EXPECT_EQ(executor_->logits[id][p], 1U) << "position " << p;
    }
    expected_.erase(id);
  }

  std::uint64_t seed_;
  std::optional<Arrivals> only_;
  std::mt19937 rng_;
  KvConfig kv_config_;
  SchedulerConfig config_;
  bool fails_ = false, moves_fail_ = false, refuses_ = false;
  std::uint32_t budget_ = 0;
  std::set<SeqId> forked_from_;
  KvEvents events_;
  std::uint64_t last_event_ = 0;
  std::set<std::pair<GroupId, BlockHash>> names_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<KvManager> kv_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<ToyExecutor> executor_;
  std::map<SeqId, Expected> expected_;  // added, and not yet reported as finished
  std::uint64_t next_ = 0;
  Micros now_{};
  StepPlan plan_;
  StepResult result_;
};

std::optional<Tally> run_in_child(std::uint32_t seed, const std::optional<Arrivals>& only, bool quiet) {
  return test::in_child(quiet, [&] {
    Tally tally;
    Blast(seed, only).run(tally);
    return tally;
  });
}

/// Says the smallest case found of a seed that fails.
void explain(std::uint32_t seed) {
  Arrivals all(150);
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  const Arrivals fewest =
      test::shrink(all, [&](const Arrivals& some) { return !run_in_child(seed, some, true).has_value(); });
  std::string list;
  for (const std::uint32_t n : fewest) list += (list.empty() ? "" : ",") + std::to_string(n);
  std::printf("== the smallest case of seed %u:\n", seed);
  (void)run_in_child(seed, fewest, false);
  ADD_FAILURE() << "replay with OCTAVO_BLAST_SEED=" << seed << " OCTAVO_BLAST_ARRIVALS=" << list;
}

TEST(Blast, EveryStepKeepsEveryPromise) {
  if (const char* seed = std::getenv("OCTAVO_BLAST_SEED")) {
    std::optional<Arrivals> only;
    if (const char* list = std::getenv("OCTAVO_BLAST_ARRIVALS")) {
      std::istringstream in(list);
      only.emplace();
      for (std::string number; std::getline(in, number, ',');) {
        only->push_back(static_cast<std::uint32_t>(std::stoul(number)));
      }
      std::ranges::sort(*only);
    }
    Tally tally;
    Blast(static_cast<std::uint32_t>(std::stoul(seed)), only).run(tally);
    return;
  }
  const char* steps_wanted = std::getenv("OCTAVO_BLAST_STEPS");
  const std::uint64_t wanted = steps_wanted != nullptr ? std::stoull(steps_wanted) : 24'000;
  Tally all;
  SchedulerCounters& total = all.scheduled;
  for (std::uint32_t seed = 1; all.steps < wanted; ++seed) {
    const std::optional<Tally> one = run_in_child(seed, {}, false);
    if (!one) return explain(seed);
    const SchedulerCounters& c = one->scheduled;
    all.steps += one->steps, all.moved_runs += one->moved_runs, all.copies += one->copies;
    total.preempted += c.preempted, total.cached_tokens += c.cached_tokens, total.finished += c.finished;
    total.computed_tokens += c.computed_tokens, total.swapped += c.swapped, total.forked_tokens += c.forked_tokens;
    total.restored_tokens += c.restored_tokens, total.failed_moves += c.failed_moves;
  }
  // The test tested something.
  EXPECT_GT(total.preempted, 200U);
  EXPECT_GT(total.cached_tokens, 1000U);
  EXPECT_GT(total.finished, 1000U);
  EXPECT_GT(total.swapped, 50U);
  EXPECT_GT(total.restored_tokens, 200U);
  EXPECT_GT(total.failed_moves, 5U);
  EXPECT_GT(total.forked_tokens, 500U);
  EXPECT_GT(all.moved_runs, 20U);
  EXPECT_GT(all.copies, 100U);
  std::printf("%llu steps, %llu tokens, %llu preemptions, %llu cached tokens, %llu sequences\n",
              static_cast<unsigned long long>(all.steps), static_cast<unsigned long long>(total.computed_tokens),
              static_cast<unsigned long long>(total.preempted), static_cast<unsigned long long>(total.cached_tokens),
              static_cast<unsigned long long>(total.finished));
}

}  // namespace
}  // namespace octavo
