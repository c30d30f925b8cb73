// The pacer on a real scheduler: it tells streams from prompts, and knows how deep a cached prompt starts.
#include "sched/pacer.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo::testing {
namespace {

constexpr StepCosts kCosts{8e6, 1e6, 0.2e6, 500, 900};

class PacerTest : public ::testing::Test {
 protected:
  static SchedulerConfig scheduler_config() {
    SchedulerConfig config;
    config.max_num_seqs = 4;
    config.max_num_batched_tokens = 512;
    return config;
  }
  static KvConfig kv_config() {
    KvConfig config;
    config.num_blocks = 1000;
    config.groups = {{0}};
    config.max_seqs = 4;
    config.prefix_caching = true;
    return config;
  }
  void add(std::uint64_t id, std::uint32_t prompt, std::uint32_t max_new_tokens, TokenId token = {7}) {
    SeqLimits limits;
    limits.max_new_tokens = max_new_tokens;
    const std::vector<TokenId> tokens(prompt, token);
    ASSERT_EQ(scheduler_.add({id}, limits, tokens, Micros(id)).why, Refusal::Why::kNone);
  }
  /// Each sampling row gets a token that no prompt holds. The tokens of the step.
  std::size_t step() {
    if (!scheduler_.schedule(plan_, budget())) return 0;
    scheduler_.commit(plan_);
    result_.clear();
    result_.step = plan_.step;
    for (const StepRow& row : plan_.rows) {
      const auto begin = static_cast<std::uint32_t>(result_.tokens.size());
      result_.rows.push_back({row.seq, row.end(), begin, row.num_samples, RowEnd::kGoesOn});
      result_.tokens.resize(begin + row.num_samples, TokenId{9});
    }
    scheduler_.apply(result_);
    return plan_.tokens.size();
  }
  [[nodiscard]] std::uint32_t budget() { return pacer_.budget(scheduler_, kv_, Micros(100)); }

  Fcfs policy_;
  KvManager kv_{kv_config()};
  Scheduler scheduler_{scheduler_config(), policy_, kv_};
  Pacer pacer_{StepTime(kCosts, {{0, 1}}), BudgetLimits{512, 0, {}, {}}, 4};
  StepPlan plan_;
  StepResult result_;
};

TEST_F(PacerTest, PromptsAloneGetAllAndStreamsKeepTheirPace) {
  add(1, 1000, 1);
  EXPECT_EQ(budget(), 512U);
  EXPECT_EQ(step(), 512U);
  EXPECT_EQ(step(), 488U);
  add(2, 5, 100);
  step();
  EXPECT_EQ(budget(), 512U) << "a stream alone";
  add(3, 3000, 1);
  const StepTime& time = pacer_.time();
  const Nanos alone = time.predict(time.row(5, 1, 1));
  for (int i = 0; i < 10; ++i) {
    step();
    StepWork work;
    for (const StepRow& row : plan_.rows) work += time.row(row.first_pos.value, row.num_tokens, row.num_logits);
    EXPECT_LE(time.predict(work), 1.01 * kMostStreamSteps * alone);
    EXPECT_GE(time.predict(work), 0.9 * kMostStreamSteps * alone) << "and no slower than that";
  }
}

TEST_F(PacerTest, ACachedPromptStartsDeep) {
  add(1, 2000, 1);
  while (step() > 0) {
  }
  add(2, 5, 100);
  step();
  add(3, 3000, 1);
  const std::uint32_t deep = budget();
  scheduler_.finish({3}, Finish::kAbort);
  add(4, 3000, 1, {8});
  EXPECT_LT(deep, budget());
}

}  // namespace
}  // namespace octavo::testing
