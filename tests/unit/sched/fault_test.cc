// Every call that takes blocks, every save, every load and every row is made to fail once, at each place of a run. The
// answers must be the same, and nothing may leak.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "support/toy_executor.h"

namespace octavo {
namespace {

/// A run that needs everything: a pool too small for its requests, windows, a cache, forks, priorities, swapping.
class CrowdedRun {
 public:
  CrowdedRun(KvMemory memory, PreemptionMode preemption) {
    kv_config_.num_blocks = memory == KvMemory::kStatic ? 41 : 25;
    kv_config_.groups = {{}, {24}};
    kv_config_.max_seqs = 4, kv_config_.max_model_len = 128, kv_config_.max_step_tokens = 40;
    kv_config_.memory = memory, kv_config_.chunk_tokens = 32;
    kv_config_.prefix_caching = memory == KvMemory::kPaged;
    kv_config_.host_blocks = 40;
    SchedulerConfig config;
    config.max_num_seqs = 4, config.max_num_batched_tokens = 40, config.max_model_len = 128;
    config.preemption = preemption, config.model_fingerprint = "toy";
    kv = std::make_unique<KvManager>(kv_config_);
    scheduler = std::make_unique<Scheduler>(config, policy_, *kv);
    executor = std::make_unique<test::ToyExecutor>(kv_config_, *scheduler);
  }

  void run() {
    for (std::uint64_t i = 1; i <= 6; ++i) {
      std::vector<TokenId> prompt;
      for (std::uint64_t t = 0; t < 10 + 7 * i; ++t) prompt.push_back({static_cast<std::int32_t>(t % 5)});
      SeqLimits limits;
      limits.max_new_tokens = 40, limits.priority = i % 3 == 0 ? -1 : 0;
      const SeqId id{10 * i};
      ASSERT_EQ(scheduler->add(id, limits, prompt, now_).why, Refusal::Why::kNone);
      expected_[id] = prompt;
      for (std::uint64_t child = 1; i == 2 && child <= 2; ++child) {
        ASSERT_EQ(scheduler->fork({id.value + child}, id, limits, now_).why, Refusal::Why::kNone);
        expected_[{id.value + child}] = prompt;
      }
      for (int n = 0; n < 5; ++n) step();
    }
    for (int n = 0; scheduler->has_work(); ++n) {
      ASSERT_LT(n, 5000) << "somebody never finishes";
      step();
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(expected_.empty());
    EXPECT_EQ(kv->counters().blocks_free, kv->counters().blocks_total);
    EXPECT_EQ(kv->counters().host_free, kv->counters().host_total);
  }

  std::unique_ptr<KvManager> kv;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<test::ToyExecutor> executor;

 private:
  void step() {
    now_ += Micros{1};
    if (!scheduler->schedule(plan_)) return;
    for (const SeqId id : plan_.finished) {
      const Sequence& q = *scheduler->find(id);
      EXPECT_EQ(q.finish, Finish::kLength);
      const std::vector<TokenId>& prompt = expected_.at(id);
      EXPECT_TRUE(std::ranges::equal(std::span(q.known).subspan(prompt.size()), test::toy_output(prompt, 40)));
      expected_.erase(id);
    }
    scheduler->commit(plan_);
    executor->run(plan_, result_);
    scheduler->apply(result_);
  }

  Priority policy_{Micros{0}};
  KvConfig kv_config_;
  std::map<SeqId, std::vector<TokenId>> expected_;
  Micros now_{};
  StepPlan plan_;
  StepResult result_;
};

struct Case {
  const char* name;
  KvMemory memory;
  PreemptionMode preemption;
};

class Faults : public testing::TestWithParam<Case> {
 protected:
  /// Runs again and again, each time with the next place failing, until there is none. Returns how many there were.
  std::uint64_t fail_each(const std::function<bool(CrowdedRun&, std::uint64_t place)>& run_with_fault) {
    for (std::uint64_t place = 1;; ++place) {
      SCOPED_TRACE("fault at " + std::to_string(place));
      CrowdedRun run(GetParam().memory, GetParam().preemption);
      const bool happened = run_with_fault(run, place);
      if (!happened || HasFailure()) return place - 1;
    }
  }
};

TEST_P(Faults, AnyAllocation) {
  const std::uint64_t places = fail_each([](CrowdedRun& run, std::uint64_t place) {
    run.kv->refuse_after(place);
    run.run();
    return run.kv->refuse_after(0) == 0;
  });
  EXPECT_GT(places, GetParam().memory == KvMemory::kStatic ? 8U : 30U);
}

TEST_P(Faults, AnySaveOrLoad) {
  const std::uint64_t places = fail_each([](CrowdedRun& run, std::uint64_t place) {
    std::uint64_t moves = 0;
    run.executor->move_fails = [&](const BlockMove&) { return ++moves == place; };
    run.run();
    EXPECT_EQ(run.scheduler->counters().failed_moves, moves >= place ? 1U : 0U);
    return moves >= place;
  });
  EXPECT_EQ(places > 10, GetParam().preemption == PreemptionMode::kSwap);
}

TEST_P(Faults, AnyRow) {
  const std::uint64_t places = fail_each([](CrowdedRun& run, std::uint64_t place) {
    std::uint64_t rows = 0;
    run.executor->end_of = [&](const StepRow&) { return ++rows == place ? RowEnd::kFailed : RowEnd::kGoesOn; };
    run.run();
    return rows >= place;
  });
  EXPECT_GT(places, 100U);
}

INSTANTIATE_TEST_SUITE_P(Strategies, Faults,
                         testing::Values(Case{"PagedSwap", KvMemory::kPaged, PreemptionMode::kSwap},
                                         Case{"PagedRecompute", KvMemory::kPaged, PreemptionMode::kRecompute},
                                         Case{"DynamicSwap", KvMemory::kDynamic, PreemptionMode::kSwap},
                                         Case{"StaticRecompute", KvMemory::kStatic, PreemptionMode::kRecompute}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace octavo
