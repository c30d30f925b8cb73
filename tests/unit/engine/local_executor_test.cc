// Debug builds: the executor refuses to compute from blocks that are not what the plan says (kv/kv_guard.h).
#include <gtest/gtest.h>

#include "engine/resources.h"
#include "support/tiny_model.h"

namespace octavo::testing {
namespace {

class GuardedExecutor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kGuarded) GTEST_SKIP() << "blocks are guarded in debug builds only";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EngineConfig config;
    config.model = file_.path();
    config.threads = 2;
    config.max_num_seqs = 4;
    config.max_num_batched_tokens = 64;
    auto resources = load_resources(config, {});
    ASSERT_TRUE(resources) << resources.error().message;
    r_ = std::move(*resources);
    for (std::int32_t i = 1; i <= 2; ++i) {
      const auto request = std::make_shared<Request>();
      for (std::int32_t t = 0; t < 20; ++t) request->prompt.push_back({100 * i + t});
      request->params.max_tokens = 8, request->params.ignore_eos = true;
      const SeqId seq{static_cast<std::uint64_t>(i)};
      r_->sampling->add(seq, request, 0, 0);
      SeqLimits limits;
      limits.max_new_tokens = 8;
      ASSERT_EQ(r_->scheduler->add(seq, limits, request->prompt, {}).why, Refusal::Why::kNone);
    }
    plan();
    ASSERT_EQ(plan_.rows.size(), 2U);
    run();
    plan();
  }
  void plan() {
    ASSERT_TRUE(r_->scheduler->schedule(plan_));
    r_->scheduler->commit(plan_);
  }
  void run() {
    r_->executor->run(plan_, result_);
    r_->scheduler->apply(result_);
  }
  BlockId& block(std::size_t row, std::uint32_t page) {
    return plan_.blocks[plan_.table_of(row, {0}).blocks_begin + page];
  }

  TempFile file_{write_tiny_model({}).bytes()};
  std::unique_ptr<EngineResources> r_;
  StepPlan plan_;
  StepResult result_;
};

TEST_F(GuardedExecutor, RunsWhatIsRight) {
  run();
  ASSERT_EQ(result_.rows.size(), 2U);
  EXPECT_EQ(result_.rows[0].end, RowEnd::kGoesOn);
}

TEST_F(GuardedExecutor, DiesOfATableOfSomebodyElse) {
  block(0, 0) = block(1, 0);
  EXPECT_DEATH(run(), "sequence 1, group 0, page 0: block . holds something else at position 0");
}

TEST_F(GuardedExecutor, DiesOfABlockThatIsZeroedUnderItsOwner) {
  plan_.ops.zeros.push_back(block(1, 0));
  EXPECT_DEATH(run(), "sequence 2, group 0, page 0: block . holds nothing at position 0");
}

TEST_F(GuardedExecutor, DiesOfABlockThatWasFreed) {
  r_->scheduler->finish({2}, Finish::kAbort);  // its row is still in the plan
  EXPECT_DEATH(run(), "sequence 2, group 0, page 1: block . is nobody's");
}

TEST_F(GuardedExecutor, DiesOfTokensThatAreNotTheSequences) {
  plan_.tokens[0].value ^= 1;
  EXPECT_DEATH(run(), "a row computes what its sequence says");
}

}  // namespace
}  // namespace octavo::testing
