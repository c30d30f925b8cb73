// A load on a model that is only numbers: plans, simulations of changes, and the search for a rate.
#include "octavo/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

ModelShape small_model() {
  ModelShape m;
  m.name = "small", m.source = "a test", m.architecture = "llama";
  m.width = 256, m.ffn_width = 512, m.vocab_size = 1000, m.context_length = 4096;
  m.layers.assign(4, {8, 2, 64, 0, 0});
  m.rope_dims = {64};
  m.matrices = {{"q", "Q4_0", 512, 256, 4, 300'000, true}, {"head", "Q4_0", 1000, 256, 1, 150'000, false}};
  m.weights_bytes = m.packed_weights_bytes = 450'000;
  return m;
}

SimulateConfig small_config() {
  SimulateConfig c;
  c.engine.threads = 2;
  c.engine.kv_bytes = 8 << 20;
  c.memory = std::uint64_t{1} << 30;
  c.steps.tokens = {1, 64, 512}, c.steps.ns = {5e6, 20e6, 120e6};
  c.steps.logit_rows = {1}, c.steps.logit_ns = {1e5};
  c.steps.single_key_ns = 100, c.steps.chunk_key_ns = 20;
  return c;
}

Workload drawn(double rate, std::uint32_t count = 200) {
  Arrivals arrivals;
  arrivals.rate = rate, arrivals.requests = count;
  auto workload = make_workload("prompt:lognormal=5/0.8;output:lognormal=3/0.6", arrivals);
  EXPECT_TRUE(workload) << workload.error().message;
  return std::move(*workload);
}

TEST(SimulateTest, ServesWhatThePlanHolds) {
  const auto r = simulate(small_model(), small_config(), drawn(2));
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->requests, 200);
  EXPECT_EQ(r->never_fit + r->turned_away, 0);
  EXPECT_GT(r->memory.num_blocks, 0);
  EXPECT_LE(r->kv_reserved_bytes.max, static_cast<double>(r->memory.pool_bytes));
  EXPECT_GE(r->max_num_batched_tokens, 64);
  EXPECT_FALSE(r->timeline.empty());
  EXPECT_NEAR(r->weights_share + r->head_share + r->attention_share + r->overhead_share, 1, 1e-9);
}

TEST(SimulateTest, MoreLoadTakesLonger) {
  const auto slow = simulate(small_model(), small_config(), drawn(1));
  const auto fast = simulate(small_model(), small_config(), drawn(50));
  ASSERT_TRUE(slow && fast);
  EXPECT_GT(fast->ttft_ms.p99, slow->ttft_ms.p99);
  EXPECT_GT(fast->output_tokens_per_s, slow->output_tokens_per_s);
  EXPECT_EQ(slow->limit, "load");
  EXPECT_NE(fast->limit, "load");
}

TEST(SimulateTest, OneChangeAtATime) {
  const std::vector<WhatIf> rows = what_if(small_model(), small_config(), drawn(20, 100));
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0].change, "as configured");
  const auto row = [&](const std::string& change) -> const SimulateReport& {
    for (const WhatIf& r : rows) {
      if (r.change != change) continue;
      EXPECT_TRUE(r.report) << r.why_not;
      return *r.report;
    }
    ADD_FAILURE() << change;
    return *rows[0].report;
  };
  EXPECT_LT(row("static batches").output_tokens_per_s, rows[0].report->output_tokens_per_s);
  EXPECT_GT(row("static memory").internal_waste, row("as configured").internal_waste);
  EXPECT_GT(row("blocks of 256").internal_waste, row("as configured").internal_waste);
  EXPECT_LE(row("windows of 1024").live_tokens.max, rows[0].report->live_tokens.max);
  EXPECT_EQ(row("KV f16").memory.bytes_per_token, row("as configured").memory.bytes_per_token);
  EXPECT_EQ(row("KV f32").memory.bytes_per_token, 2 * row("as configured").memory.bytes_per_token);
}

TEST(SimulateTest, TheLargestRateKeepsTheGoalAndTwiceItDoesNot) {
  SimulateConfig config = small_config();
  config.goal.ttft = 400ms;
  Arrivals arrivals;
  arrivals.requests = 100;
  const std::string source = "prompt:200;output:20";
  const auto found = largest_rate(small_model(), config, source, arrivals);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_GT(found->rate, 0);
  const auto share = [&](double rate) {
    arrivals.rate = rate;
    return simulate(small_model(), config, *make_workload(source, arrivals))->good_share;
  };
  EXPECT_GE(share(found->rate), kGoodShare);
  EXPECT_LT(share(found->rate * 2), kGoodShare);
  config.goal.ttft = 1ms;
  EXPECT_EQ(largest_rate(small_model(), config, source, arrivals)->rate, 0);
}

TEST(SimulateTest, RefusalsSayWhy) {
  SimulateConfig config = small_config();
  ModelShape model = small_model();
  model.unsupported = "its attention is latent";
  auto r = simulate(model, config, drawn(1, 2));
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("latent"));
  config.steps.ns[0] = -1;
  EXPECT_FALSE(simulate(small_model(), config, drawn(1, 2)));
  config = small_config();
  EXPECT_FALSE(simulate(small_model(), config, Workload{}));
  Arrivals closed;
  closed.concurrency = 2;
  config.goal.ttft = 100ms;
  EXPECT_FALSE(largest_rate(small_model(), config, "prompt:10;output:2", closed));
  EXPECT_FALSE(largest_rate(small_model(), small_config(), "prompt:10;output:2", {}));
}

}  // namespace
}  // namespace octavo
