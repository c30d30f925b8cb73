// The model of step times and the choice of budgets are arithmetic: tested without model, clock or machine.
#include "sched/step_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "sched/budget.h"

namespace octavo::testing {
namespace {

constexpr StepCosts kCosts{8e6, 1e6, 0.2e6, 300, 900};  // ns: as a small model on two cores

StepTime machine(std::vector<WindowShare> windows = {{0, 1}}) { return StepTime(kCosts, std::move(windows)); }

TimedWork timed(const StepTime& time, const StepWork& work) { return {work, time.predict(work)}; }

StepSamples samples_of(const StepTime& time, bool deep) {
  StepWork batch;
  for (int i = 0; i < 16; ++i) batch += time.row(0, 1, 1);
  StepSamples out{timed(time, time.row(0, 1, 1)), timed(time, time.row(0, 64, 1)), timed(time, batch), {}, {}};
  if (deep) out.deep_single = timed(time, time.row(1024, 1, 1)), out.deep_chunk = timed(time, time.row(1024, 64, 1));
  return out;
}

TEST(StepTime, CountsTheKeysThatATokenReads) {
  const StepTime full({}, {{0, 1}});
  EXPECT_EQ(full.row(0, 1, 1), (StepWork{1, 1, 0, 1}));
  EXPECT_EQ(full.row(999, 1, 1), (StepWork{1, 1, 0, 1000}));
  EXPECT_EQ(full.row(0, 16, 1), (StepWork{16, 1, 16 * 17 / 2, 0}));
  EXPECT_EQ(full.row(100, 32, 0), (StepWork{32, 0, 32 * 100 + 32 * 33 / 2, 0}));
  EXPECT_EQ(full.row(0, 17, 0), full.row(0, 16, 0) + full.row(16, 1, 0));
  const StepTime windowed({}, {{8, 0.75}, {0, 0.25}});
  EXPECT_DOUBLE_EQ(windowed.row(6, 16, 0).chunk_keys, 0.75 * (7 + 15 * 8) + 0.25 * (16 * 6 + 16 * 17 / 2));
}

TEST(StepTime, APartOfATileCostsBetweenATokenAndATile) {
  const StepTime time({0, 0, 0, 1, 3}, {{0, 1}});  // alone three times as dear as in a tile
  const Nanos one = time.added(time.row(1000, 1, 0)), tile = time.added(time.row(1000, 16, 0));
  Nanos before = one;
  for (std::uint32_t n = 2; n <= 16; ++n) {
    const Nanos part = time.added(time.row(1000, n, 0));
    EXPECT_GT(part, before);
    EXPECT_NEAR((part - one) / (tile - one), (n - 1) / 15.0, 0.01);
    before = part;
  }
}

TEST(StepTime, FitFindsTheCostsThatMadeTheSamples) {
  const StepCosts got = fit_costs(samples_of(machine(), true));
  EXPECT_NEAR(got.step, kCosts.step, 0.01 * kCosts.step);
  EXPECT_NEAR(got.token, kCosts.token, 0.01 * kCosts.token);
  EXPECT_NEAR(got.logit_row, kCosts.logit_row, 0.01 * kCosts.logit_row);
  EXPECT_NEAR(got.chunk_key, kCosts.chunk_key, 1);
  EXPECT_NEAR(got.single_key, kCosts.single_key, 1);
}

TEST(StepTime, FitOfNonsenseIsNeverNegative) {
  StepSamples samples = samples_of(machine(), true);
  samples.deep_chunk->time = samples.deep_single->time = samples.batch.time = Nanos(1);
  samples.chunk.time = Nanos(2);
  const StepCosts got = fit_costs(samples);
  for (const double cost : {got.step, got.token, got.logit_row, got.chunk_key, got.single_key}) EXPECT_GE(cost, 0);
  EXPECT_EQ(fit_costs(samples_of(machine(), false)).chunk_key, 0) << "no depth, no price of it";
}

TEST(StepTime, FollowsAMachineThatGotSlower) {
  StepTime time(kCosts, {{0, 1}});
  const StepTime slower(
      {3 * kCosts.step, 3 * kCosts.token, 3 * kCosts.logit_row, 3 * kCosts.chunk_key, 3 * kCosts.single_key}, {{0, 1}});
  const std::vector<StepWork> steps = {time.row(500, 1, 1), time.row(500, 1, 1) + time.row(2000, 40, 0)};
  for (int i = 0; i < 200; ++i) time.observe(steps[i % 2], slower.predict(steps[i % 2]));
  for (const StepWork& work : steps) EXPECT_NEAR(time.predict(work) / slower.predict(work), 1, 0.1);
}

TEST(StepTime, OneHiccupChangesLittle) {
  StepTime time = machine();
  const StepWork work = time.row(500, 1, 1);
  const Nanos before = time.predict(work);
  time.observe(work, 1000 * before);
  EXPECT_LT(time.predict(work) / before, 1.1);
  time.observe(work, Nanos(0));
  EXPECT_GT(time.predict(work) / before, 0.9);
}

TEST(AutoBudget, IsTheLargestMultipleOfSixteenWithinEightDecodeSteps) {
  const StepTime time = machine();
  const Nanos decode = time.predict(time.row(0, 1, 1));
  const AutoBudget got = auto_budget(time, 8, 512);
  EXPECT_EQ(got.tokens % 16, 0U);
  EXPECT_LE(time.predict(time.row(0, got.tokens, 1)), 8 * decode);
  EXPECT_GT(time.predict(time.row(0, got.tokens + 16, 1)), 8 * decode);
  EXPECT_NEAR(got.decode_steps, time.predict(time.row(0, got.tokens, 1)) / decode, 1e-9);
}

TEST(AutoBudget, NeverUnderTheSequencesNorOverTheBuffers) {
  const AutoBudget many = auto_budget(machine(), 200, 512);
  EXPECT_EQ(many.tokens, 200U);
  EXPECT_GT(many.decode_steps, 8);
  EXPECT_EQ(auto_budget(machine(), 8, 32).tokens, 32U);
  EXPECT_EQ(auto_budget(machine(), 100, 100).tokens, 100U) << "one that is given only gets its figure";
}

/// A stream at some depth, and prompts beside it.
struct Load {
  StepTime time = machine();
  BudgetLimits limits{.max_tokens = 512, .max_per_prompt = 0, .target_tpot = {}, .target_ttft = {}};
  std::uint32_t num_streams = 1;
  std::uint32_t depth = 100;
  std::vector<PromptLeft> prompts = {};

  [[nodiscard]] StepWork streams() const {
    StepWork work;
    for (std::uint32_t i = 0; i < num_streams; ++i) work += time.row(depth, 1, 1);
    return work;
  }
  [[nodiscard]] Nanos alone() const { return time.predict(streams()); }
  [[nodiscard]] std::uint32_t budget() const {
    return StepBudget(limits).choose(time, num_streams, streams(), prompts);
  }
  /// Of the step that gives `budget` to the first prompt.
  [[nodiscard]] Nanos step(std::uint32_t budget) const {
    return time.predict(streams() + time.row(prompts[0].computed, budget - num_streams, 0));
  }
};

TEST(StepTime, SlackFollowsSlowStepsAtOnceAndFades) {
  StepTime time = machine();
  const StepWork work = time.row(0, 10, 1);
  EXPECT_EQ(time.slack(), 1);
  time.observe(work, time.predict(work) / 2);
  EXPECT_EQ(time.slack(), 1) << "fast steps promise nothing";
  for (int i = 0; i < 3; ++i) time.observe(work, 2 * time.predict(work));
  EXPECT_GT(time.slack(), 1.7);
  EXPECT_LT(time.slack(), 2.0);
  for (int i = 0; i < 60; ++i) time.observe(work, time.predict(work));
  EXPECT_LT(time.slack(), 1.05);
}

TEST(StepBudget, AStumblingMachineGetsShorterSteps) {
  Load load{.prompts = {{0, 3000, true, {}}}};
  const std::uint32_t usual = load.budget();
  const StepWork work = load.streams();
  for (int i = 0; i < 5; ++i) load.time.observe(work, 2 * load.time.predict(work));
  EXPECT_LT(load.budget(), usual * 3 / 4);
}

TEST(StepBudget, NobodyStreamingTakesAll) {
  Load load{.num_streams = 0, .prompts = {{0, 3000, false, {}}}};
  load.limits.target_tpot = Nanos(1);
  EXPECT_EQ(load.budget(), 512U);
}

TEST(StepBudget, StreamsAloneKeepTheWholeBudgetOpen) { EXPECT_EQ(Load{}.budget(), 512U); }

TEST(StepBudget, IsTheLargestThatStreamsBear) {
  std::uint32_t before = 512;
  for (const std::uint32_t depth : {0U, 500U, 1500U, 2900U}) {
    const Load load{.prompts = {{depth, 3000 - depth, true, {}}}};
    const std::uint32_t budget = load.budget();
    EXPECT_LE(load.step(budget), kMostStreamSteps * load.alone());
    EXPECT_GT(load.step(budget + 1), kMostStreamSteps * load.alone());
    EXPECT_LT(budget, before) << "deeper tokens cost more";
    before = budget;
  }
}

TEST(StepBudget, ManyStreamsBearMore) {
  const Load one{.prompts = {{0, 3000, true, {}}}};
  const Load many{.num_streams = 32, .prompts = {{0, 3000, true, {}}}};
  EXPECT_GT(many.budget() - 32, one.budget() - 1);
}

TEST(StepBudget, KeepsTheTargetOfTpot) {
  Load load{.prompts = {{2000, 1000, true, {}}}};
  load.limits.target_tpot = 2 * load.alone();
  const std::uint32_t budget = load.budget();
  EXPECT_LE(load.step(budget), 2 * load.alone());
  EXPECT_GT(load.step(budget + 1), 2 * load.alone());
}

TEST(StepBudget, AnUnreachableTargetLeavesPromptsAFifthOfTheTime) {
  Load load{.num_streams = 3, .prompts = {{0, 1000, false, {}}}};
  load.limits.target_tpot = Nanos(1);
  const std::uint32_t budget = load.budget();
  EXPECT_LE(load.step(budget), kLeastStretch * load.alone());
  EXPECT_GT(load.step(budget + 1), kLeastStretch * load.alone());
  load.prompts = {{100'000, 1000, true, {}}, {0, 50, false, {}}};  // so deep that no token fits
  EXPECT_EQ(load.budget(), 4U) << "each of the four that run has its token";
  load.prompts = {{0, 50, false, {}}, {100'000, 1000, true, {}}};
  EXPECT_EQ(load.budget(), 5U) << "and one for the prompt that comes before them";
  load.limits.max_tokens = 4;
  EXPECT_EQ(load.budget(), 4U);
}

TEST(StepBudget, EveryRunningSequenceHasItsToken) {
  Load load{.num_streams = 2};
  for (std::uint32_t i = 0; i < 100; ++i) load.prompts.push_back({3000, 500, true, {}});
  load.limits.target_tpot = Nanos(1);
  EXPECT_GE(load.budget(), 102U);
}

TEST(StepBudget, PromptsThatFitLeaveTheRestOpen) {
  const Load load{.prompts = {{0, 5, false, {}}, {0, 6, false, {}}}};
  EXPECT_EQ(load.budget(), 512U);
}

TEST(StepBudget, ALongPromptIsCappedByItsThreshold) {
  Load load{.prompts = {{0, 3000, true, {}}}};
  const std::uint32_t first = load.budget();
  load.prompts.push_back({2000, 1000, true, {}});  // behind it, deeper
  EXPECT_LE(load.budget(), first + 1) << "the first takes what there is, but for one token";
  EXPECT_GT(load.budget(), first - 5);
  load.limits.max_per_prompt = 40;
  EXPECT_LT(load.budget(), first) << "the second gets its share, at its depth";
}

TEST(StepBudget, ALatePromptRaisesTheBudget) {
  Load load{.prompts = {{0, 1000, false, {}}}};
  const std::uint32_t usual = load.budget();
  load.limits.target_ttft = std::chrono::hours(1);
  EXPECT_EQ(load.budget(), usual) << "there is time";
  const Nanos work = load.time.added(load.time.row(0, 1000, 1));
  load.limits.target_ttft = 1.05 * work;
  EXPECT_GT(load.budget(), usual) << "in time only if streams wait";
  EXPECT_LT(load.budget(), 512U);
  load.prompts[0].waited = work;
  EXPECT_EQ(load.budget(), 512U) << "late already";
  load.limits.target_tpot = kMostStreamSteps * load.alone();
  EXPECT_EQ(load.budget(), usual) << "never beyond what streams were promised";
}

}  // namespace
}  // namespace octavo::testing
