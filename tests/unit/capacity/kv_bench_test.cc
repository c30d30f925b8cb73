#include "octavo/kv_bench.h"

#include <gtest/gtest.h>

#include "capacity/fake_server.h"
#include "capacity/kv_waste.h"

namespace octavo {
namespace {

TEST(WasteMeter, SharesAreOfTheMeans) {
  WasteMeter meter(/*page_bytes=*/1600, /*block_tokens=*/16);  // 100 bytes a place
  meter.add({.reserved = 160, .used = 150, .external = 0}, 2);
  meter.add({.reserved = 320, .used = 270, .external = 64}, 5);
  KvWasteRow row;
  row.pool_bytes = 64'000;
  meter.report(row);
  EXPECT_EQ(row.steps, 2U);
  EXPECT_DOUBLE_EQ(row.reserved_bytes, 24'000);
  EXPECT_DOUBLE_EQ(row.used_bytes, 21'000);
  EXPECT_DOUBLE_EQ(row.external_bytes, 3'200);
  EXPECT_DOUBLE_EQ(row.running, 3.5);
  EXPECT_DOUBLE_EQ(row.internal_waste(), 3.0 / 24);
  EXPECT_DOUBLE_EQ(row.external_waste(), 0.05);
  EXPECT_DOUBLE_EQ(row.free_share(), 0.625);
}

TEST(WasteMeter, NothingMeasuredWastesNothing) {
  KvWasteRow row;
  WasteMeter(64, 16).report(row);
  EXPECT_EQ(row.steps, 0U);
  EXPECT_EQ(row.internal_waste(), 0);
  EXPECT_EQ(row.external_waste(), 0);
  EXPECT_EQ(row.free_share(), 0);
}

/// Sequences of one block each on a pool for two of them.
TEST(MeasureWaste, CountsWhatIsReservedWhileOthersWait) {
  WasteRun run;
  run.page_bytes = 160;
  run.kv.num_blocks = 3, run.kv.groups = {{}}, run.kv.max_seqs = 2, run.kv.max_model_len = 16;
  run.scheduler.max_num_seqs = 2, run.scheduler.max_model_len = 16;
  const std::vector<PlannedRequest> requests = {{{}, 8, 4}, {{}, 8, 8}, {{}, 8, 8}, {{}, 8, 8}};
  const KvWasteRow row = measure_waste(run, requests);
  EXPECT_EQ(row.requests, 4U);
  EXPECT_EQ(row.preemptions, 0U);
  EXPECT_EQ(row.pool_bytes, 320U);
  EXPECT_GT(row.steps, 0U);
  EXPECT_DOUBLE_EQ(row.reserved_bytes, row.running * 160);
  EXPECT_GE(row.used_bytes, row.running * 80);  // the prompts
  EXPECT_LT(row.used_bytes, row.reserved_bytes);
}

TEST(FakeServer, ServesEveryTokenAndEndsEmpty) {
  SchedulerConfig scheduler;
  scheduler.max_num_seqs = 3, scheduler.max_model_len = 256;
  KvConfig kv;
  kv.num_blocks = 40, kv.groups = {{}}, kv.max_seqs = 3, kv.max_model_len = 256, kv.prefix_caching = true;
  FakeServer server(scheduler, kv);
  for (const std::uint32_t prompt : {1U, 16U, 100U, 33U}) server.add(prompt, 20);
  while (server.step()) {
  }
  const SchedulerCounters& counters = server.scheduler().counters();
  EXPECT_EQ(counters.finished, 4U);
  EXPECT_EQ(counters.prompt_tokens, 150U);
  EXPECT_EQ(counters.cached_tokens, 0U);  // no two prompts share a prefix
  EXPECT_EQ(counters.sampled_tokens, 80U);
  EXPECT_EQ(server.kv().counters().blocks_free, 39U);
}

KvBenchConfig small_bench() {
  KvBenchConfig config;
  config.kv_bytes = std::uint64_t{4} << 30U;  // 32,768 tokens
  config.requests = 200;
  config.running = {};
  return config;
}

TEST(BenchKv, PagedWastesLittleAndTheOthersMore) {
  const auto report = bench_kv(small_bench());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->kv_bytes_per_token, 128U * 1024);
  for (const KvWasteRow& row : report->waste) EXPECT_EQ(row.requests, 200U);
  ASSERT_EQ(report->waste.size(), 4U);
  const KvWasteRow &paged = report->waste[0], &large = report->waste[1], &dynamic = report->waste[2],
                   &fixed = report->waste[3];
  EXPECT_LE(paged.internal_waste(), .01);
  EXPECT_EQ(paged.external_waste(), 0);
  EXPECT_LT(paged.internal_waste(), large.internal_waste());
  EXPECT_LT(large.running, paged.running);
  EXPECT_GT(dynamic.internal_waste(), paged.internal_waste());
  EXPECT_GT(dynamic.moves, 0U);
  EXPECT_GT(fixed.internal_waste(), .5);  // reserved for the longest request
  EXPECT_LT(fixed.running, dynamic.running);
  EXPECT_TRUE(report->cost.empty());
}

TEST(BenchKv, SameConfigurationSameFigures) {
  const auto first = bench_kv(small_bench()), again = bench_kv(small_bench());
  ASSERT_TRUE(first && again);
  for (std::size_t i = 0; i < first->waste.size(); ++i) {
    EXPECT_EQ(first->waste[i].reserved_bytes, again->waste[i].reserved_bytes);
    EXPECT_EQ(first->waste[i].used_bytes, again->waste[i].used_bytes);
    EXPECT_EQ(first->waste[i].steps, again->waste[i].steps);
  }
}

TEST(BenchKv, APoolBelowTheLongestRequestIsRefusedWithTheNumbers) {
  KvBenchConfig config = small_bench();
  config.kv_bytes = 1U << 30U;
  const auto report = bench_kv(config);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(report.error().message.find("1073741824"), std::string::npos) << report.error().message;
  EXPECT_NE(report.error().message.find("15104"), std::string::npos) << report.error().message;
}

TEST(BenchKv, CostHasARowPerBatchAndCaching) {
  KvBenchConfig config = small_bench();
  config.requests = 0;
  config.running = {2};
  const auto report = bench_kv(config);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->waste.empty());
  ASSERT_EQ(report->cost.size(), 2U);
  EXPECT_FALSE(report->cost[0].prefix_caching);
  EXPECT_TRUE(report->cost[1].prefix_caching);
  for (const KvCostRow& row : report->cost) EXPECT_LE(row.min_us, row.median_us);
}

}  // namespace
}  // namespace octavo
