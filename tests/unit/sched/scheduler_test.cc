#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <memory>

#include "support/toy_executor.h"

namespace octavo {
namespace {

std::vector<TokenId> tokens(std::uint32_t count) {
  std::vector<TokenId> out;
  for (std::uint32_t i = 0; i < count; ++i) out.push_back({static_cast<std::int32_t>(i % 40)});
  return out;
}

/// One scheduler on a roomy pool, with the toy executor.
struct Machine {
  explicit Machine(SchedulerConfig s = {}, std::uint32_t blocks = 200, bool caching = false) : config(s) {
    kv_config.num_blocks = blocks, kv_config.groups = {{}}, kv_config.prefix_caching = caching;
    kv = std::make_unique<KvManager>(kv_config);
    scheduler = std::make_unique<Scheduler>(config, policy, *kv);
    executor = std::make_unique<test::ToyExecutor>(kv_config, *scheduler);
  }
  bool step() {
    if (!scheduler->schedule(plan)) return false;
    scheduler->commit(plan);
    executor->run(plan, result);
    scheduler->apply(result);
    return true;
  }
  void add(std::uint64_t id, std::uint32_t prompt, SeqLimits limits) {
    ASSERT_EQ(scheduler->add({id}, limits, tokens(prompt), Micros{static_cast<std::int64_t>(id)}).why,
              Refusal::Why::kNone);
  }

  Fcfs policy;
  SchedulerConfig config;
  KvConfig kv_config;
  std::unique_ptr<KvManager> kv;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<test::ToyExecutor> executor;
  StepPlan plan;
  StepResult result;
};

SeqLimits limits_of(std::uint32_t max_new_tokens, bool prompt_logits = false) {
  SeqLimits l;
  l.max_new_tokens = max_new_tokens, l.prompt_logits = prompt_logits;
  return l;
}

TEST(Scheduler, PromptLogitsComeFromEveryPositionOnce) {
  SchedulerConfig s;
  s.max_num_seqs = 2, s.max_num_batched_tokens = 32;
  Machine m(s);
  m.add(1, 40, limits_of(2, true));
  ASSERT_TRUE(m.step());
  EXPECT_EQ(m.plan.rows[0].num_logits, 32U);
  EXPECT_EQ(m.plan.rows[0].num_samples, 0U);
  ASSERT_TRUE(m.step());
  EXPECT_EQ(m.plan.rows[0].num_logits, 8U);
  EXPECT_EQ(m.plan.rows[0].num_samples, 1U);
  EXPECT_EQ(m.plan.rows[0].num_prompt, 8U);
  ASSERT_TRUE(m.step());
  EXPECT_EQ(m.plan.rows[0].num_logits, 1U);
  EXPECT_EQ(m.plan.rows[0].num_prompt, 0U);
}

TEST(Scheduler, NothingToGenerateStillComputesThePrompt) {
  Machine m;
  m.add(1, 40, limits_of(0, true));
  ASSERT_TRUE(m.step());
  EXPECT_EQ(m.plan.rows[0].num_logits, 40U);
  EXPECT_EQ(m.plan.rows[0].num_samples, 0U);
  ASSERT_EQ(m.scheduler->ended().size(), 1U);
  EXPECT_EQ(m.scheduler->find({1})->finish, Finish::kLength);
  ASSERT_TRUE(m.step());
  EXPECT_EQ(m.plan.finished.size(), 1U);
  EXPECT_EQ(m.scheduler->find({1}), nullptr);
  EXPECT_FALSE(m.scheduler->has_work());
}

TEST(Scheduler, StopsWhenTheSamplerSaysSo) {
  Machine m;
  m.executor->end_of = [](const StepRow& r) { return r.first_pos.value >= 42 ? RowEnd::kStopped : RowEnd::kGoesOn; };
  m.add(1, 40, limits_of(100));
  while (m.step()) {
  }
  EXPECT_EQ(m.scheduler->counters().sampled_tokens, 4U);
  EXPECT_EQ(m.scheduler->counters().finished, 1U);
}

TEST(Scheduler, DeadlinesEndTheWaitingAndTheRunning) {
  SchedulerConfig s;
  s.max_num_seqs = 1;
  Machine m(s);
  SeqLimits l = limits_of(100);
  l.deadline = Micros{50};
  m.add(1, 10, l);
  m.add(2, 10, l);
  ASSERT_TRUE(m.step());
  m.scheduler->expire(Micros{49});
  EXPECT_TRUE(m.scheduler->ended().empty());
  m.scheduler->expire(Micros{50});
  EXPECT_EQ(m.scheduler->ended().size(), 2U);
  EXPECT_EQ(m.scheduler->find({2})->finish, Finish::kDeadline);
  EXPECT_EQ(m.kv->counters().blocks_free, m.kv->counters().blocks_total);
}

TEST(Scheduler, AFailedRowRecomputesOnceThenEndsWithAnError) {
  Machine m({}, 200, true);
  int failures = 1;
  m.executor->end_of = [&](const StepRow&) { return failures-- > 0 ? RowEnd::kFailed : RowEnd::kGoesOn; };
  m.add(1, 40, limits_of(3));
  ASSERT_TRUE(m.step());
  EXPECT_EQ(m.scheduler->find({1})->state, SeqState::kWaiting);
  EXPECT_EQ(m.kv->counters().blocks_cached, 0U) << "what failed is not to be found";
  ASSERT_TRUE(m.step());
  EXPECT_EQ(m.scheduler->find({1})->outputs(), 1U);
  failures = 1;
  ASSERT_TRUE(m.step());
  EXPECT_EQ(m.scheduler->find({1})->finish, Finish::kError);
}

TEST(Scheduler, CountersAddUp) {
  Machine m({}, 200, true);
  m.add(1, 100, limits_of(5));
  while (m.step()) {
  }
  m.add(2, 100, limits_of(5));
  while (m.step()) {
  }
  const SchedulerCounters& c = m.scheduler->counters();
  EXPECT_EQ(c.cached_tokens, 96U);
  EXPECT_EQ(c.prompt_tokens, 100U + 4);
  EXPECT_EQ(c.computed_tokens, 100U + 4 + 4 + 4);
  EXPECT_EQ(c.sampled_tokens, 10U);
  EXPECT_EQ(c.admitted, 2U);
  EXPECT_EQ(c.finished, 2U);
  EXPECT_EQ(m.kv->counters().hit_tokens, 96U);
}

TEST(Scheduler, NaiveModeComputesEverythingEveryTime) {
  SchedulerConfig s;
  s.discard_kv_after_sample = true;
  Machine m(s);
  m.add(1, 10, limits_of(4));
  while (m.step()) {
  }
  EXPECT_EQ(m.scheduler->counters().computed_tokens, 10U + 11 + 12 + 13);
  EXPECT_EQ(m.kv->counters().blocks_free, m.kv->counters().blocks_total);
}

TEST(Scheduler, AgingBoundsHowLongALowPriorityIsOvertaken) {
  const Priority policy(Micros{100});
  Sequence low, high;
  low.id = {1}, low.limits.priority = 5, low.arrival = Micros{0};
  high.id = {2}, high.limits.priority = 0, high.arrival = Micros{499};
  EXPECT_LT(policy.rank(high), policy.rank(low));
  high.arrival = Micros{501};
  EXPECT_LT(policy.rank(low), policy.rank(high));
  EXPECT_TRUE(policy.may_preempt(high, low));
  EXPECT_FALSE(policy.may_preempt(low, high));
}

/// One seat and a rival that arrives at every microsecond: the arrival of the last one that went before `patient`,
/// which arrived at 1. The maximum if it starved.
Micros last_overtaker(const Policy& policy, SeqLimits patient, std::uint32_t prompt, SeqLimits rival) {
  SchedulerConfig s;
  s.max_num_seqs = 1, s.max_num_batched_tokens = 64;
  KvConfig c;
  c.num_blocks = 200, c.groups = {{}};
  KvManager kv(c);
  Scheduler scheduler(s, policy, kv);
  test::ToyExecutor executor(c, scheduler);
  StepPlan plan;
  StepResult result;
  Micros last{0};
  const auto arrive = [&](std::int64_t now, const SeqLimits& limits, std::uint32_t length) {
    EXPECT_EQ(scheduler.add({static_cast<std::uint64_t>(now)}, limits, tokens(length), Micros{now}).why,
              Refusal::Why::kNone);
  };
  arrive(1, patient, prompt);
  for (std::int64_t now = 2; now < 1000; ++now) {
    arrive(now, rival, 10);
    if (!scheduler.schedule(plan)) return Micros::max();
    scheduler.commit(plan);
    for (const Admission& a : plan.admitted) {
      if (a.seq == SeqId{1}) return last;
      last = scheduler.find(a.seq)->arrival;
    }
    executor.run(plan, result);
    scheduler.apply(result);
  }
  return Micros::max();
}

// The bounds that sched/policy.h states.
TEST(Policy, ALongOneIsOvertakenOnlyWithinTheDifferenceInLength) {
  const Micros last = last_overtaker(ShortestRemaining(Micros{3}), limits_of(20), 40, limits_of(1));
  EXPECT_GT(last, Micros{10}) << "shorter ones do go first";
  EXPECT_LE(last, Micros{1} + Micros{3} * ((40 + 20) - (10 + 1)));
}

TEST(Policy, AgingBoundsTheWaitOfALowPriority) {
  SeqLimits low = limits_of(1), high = limits_of(1);
  low.priority = 5, high.priority = 0;
  const Micros last = last_overtaker(Priority(Micros{20}), low, 10, high);
  EXPECT_GT(last, Micros{10}) << "urgent ones do go first";
  EXPECT_LE(last, Micros{1} + 5 * Micros{20});
  EXPECT_EQ(last_overtaker(Priority(Micros{0}), low, 10, high), Micros::max()) << "strict priority has no bound";
}

}  // namespace
}  // namespace octavo
