// The virtual server: what goes in comes out, time is what prices say, and what limits is named.
#include "capacity/simulator.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octavo {
namespace {

using namespace std::chrono_literals;

StepCurve flat_curve(double step_ms) {  // every step alike, whatever it holds
  StepCurve c;
  c.tokens = {1, 512}, c.ns = {step_ms * 1e6, step_ms * 1e6};
  return c;
}

struct Server {
  EngineConfig engine;
  ServingFacts facts;
  StepCurve curve = flat_curve(10);
  ServiceGoal goal;

  Server() {
    facts.groups = {{0}};
    facts.num_blocks = 4096, facts.max_model_len = 8192, facts.max_num_batched_tokens = 512;
    facts.fingerprint = "a model";
  }
  SimulateReport run(const Workload& workload) {
    const StepPrice price(curve, {{0, 1}}, 0);
    facts.costs = price.costs();
    Simulator simulator({engine, facts, price, goal, 100});
    simulator.run(workload);
    return simulator.report();
  }
};

Workload equal_requests(std::uint32_t count, std::uint32_t prompt, std::uint32_t output,
                        std::chrono::microseconds gap) {
  Workload w;
  for (std::uint32_t i = 0; i < count; ++i) w.requests.push_back({i * gap, prompt, output, {}});
  return w;
}

TEST(SimulatorTest, OneRequestTakesItsSteps) {
  Server server;
  const SimulateReport r = server.run(equal_requests(1, 100, 11, 0us));
  EXPECT_EQ(r.requests, 1);
  EXPECT_EQ(r.steps, 11);  // one for the prompt, ten more tokens
  EXPECT_NEAR(r.ttft_ms.mean, 10, 1e-9);
  EXPECT_NEAR(r.tpot_ms.mean, 10, 1e-9);
  EXPECT_NEAR(r.itl_ms.mean, 10, 1e-9);
  EXPECT_EQ(r.itl_ms.count, 10);
  EXPECT_NEAR(r.e2e_ms.mean, 110, 1e-9);
  EXPECT_NEAR(r.seconds, 0.110, 1e-9);
  EXPECT_NEAR(r.output_tokens_per_s, 100, 1e-6);
  EXPECT_EQ(r.live_tokens.max, 109);  // gauges are of the ends of steps, when the last one is gone
}

TEST(SimulatorTest, IdleTimeIsNotWork) {
  Server server;
  const SimulateReport r = server.run(equal_requests(3, 10, 1, 1s));
  EXPECT_EQ(r.steps, 3);
  EXPECT_NEAR(r.seconds, 2.01, 1e-9);
  EXPECT_NEAR(r.idle_share, 1.98 / 2.01, 1e-9);
  EXPECT_EQ(r.limit, "load");
}

TEST(SimulatorTest, SeatsLimitAndAreNamed) {
  Server server;
  server.engine.max_num_seqs = 2;
  const SimulateReport r = server.run(equal_requests(20, 10, 20, 0us));
  EXPECT_EQ(r.requests, 20);
  EXPECT_EQ(r.running.max, 2);
  EXPECT_EQ(r.limit, "seats");
  EXPECT_GT(r.queued_share, 0.8);
}

TEST(SimulatorTest, MemoryLimitsAndEveryRequestFinishes) {
  Server server;
  server.engine.prefix_caching = false;
  server.facts.num_blocks = 40;  // 640 tokens
  server.facts.max_model_len = 600;
  const SimulateReport r = server.run(equal_requests(30, 100, 150, 0us));
  EXPECT_EQ(r.requests, 30);
  EXPECT_EQ(r.limit, "memory");
  EXPECT_LE(r.live_tokens.max, 640);
  EXPECT_GT(r.preemptions, 0);
  EXPECT_GT(r.preempted_share, 0);
}

TEST(SimulatorTest, WhatNeverFitsIsRefusedAndCounted) {
  Server server;
  Workload w = equal_requests(3, 10, 5, 0us);
  w.requests[1].prompt_tokens = 10'000;
  const SimulateReport r = server.run(w);
  EXPECT_EQ(r.requests, 2);
  EXPECT_EQ(r.never_fit, 1);
  EXPECT_NEAR(r.good_share, 2.0 / 3, 1e-9);
}

TEST(SimulatorTest, AFullQueueTurnsAway) {
  Server server;
  server.engine.max_num_seqs = 2, server.engine.max_queued = 5;
  const SimulateReport r = server.run(equal_requests(20, 10, 20, 0us));
  EXPECT_EQ(r.turned_away, 15);
  EXPECT_EQ(r.requests, 5);
}

TEST(SimulatorTest, NamesOfBlocksChangeNothingWhereNothingIsShared) {
  Server server;
  const Workload w = equal_requests(100, 300, 50, 20ms);
  const SimulateReport with = server.run(w);
  server.engine.prefix_caching = false;
  const SimulateReport without = server.run(w);
  EXPECT_EQ(with.preemptions, 0);
  EXPECT_EQ(with.steps, without.steps);
  EXPECT_EQ(with.seconds, without.seconds);
  EXPECT_EQ(with.ttft_ms.p99, without.ttft_ms.p99);
  EXPECT_EQ(with.kv_reserved_bytes.mean, without.kv_reserved_bytes.mean);
}

TEST(SimulatorTest, ClosedLoopsKeepTheirNumber) {
  Server server;
  Workload w = equal_requests(50, 20, 10, 0us);
  w.concurrency = 5;
  const SimulateReport r = server.run(w);
  EXPECT_EQ(r.requests, 50);
  EXPECT_EQ(r.running.max, 5);
  EXPECT_EQ(r.queued_share, 0);
}

TEST(SimulatorTest, SharedPrefixesAreComputedOnce) {
  Server server;
  Workload w = equal_requests(10, 1100, 4, 500ms);
  for (PlannedRequest& request : w.requests) request.prefix_ids = {1, 2};
  const SimulateReport r = server.run(w);
  EXPECT_NEAR(r.prefix_hit_share, 0.9 * 1024 / 1100, 1e-9);
  for (std::size_t i = 0; i < w.requests.size(); ++i) w.requests[i].prefix_ids = {i, 2};  // nobody shares the first
  EXPECT_EQ(server.run(w).prefix_hit_share, 0);
}

TEST(SimulatorTest, StaticBatchesWaitForTheirLongest) {
  Server server;
  server.engine.max_num_seqs = 4;
  Workload w = equal_requests(16, 10, 10, 0us);
  for (std::size_t i = 0; i < w.requests.size(); i += 4) w.requests[i].output_tokens = 100;
  const SimulateReport continuous = server.run(w);
  server.engine.batching = Batching::kStatic;
  const SimulateReport fixed = server.run(w);
  EXPECT_EQ(fixed.requests, 16);
  EXPECT_GT(fixed.seconds, continuous.seconds * 1.3);
}

TEST(SimulatorTest, GoalsAreKeptByEachRequestOrNot) {
  Server server;
  server.goal.ttft = 15ms;
  Workload w = equal_requests(2, 500, 2, 0us);  // the second waits for the first one's step
  const SimulateReport r = server.run(w);
  EXPECT_NEAR(r.good_share, 0.5, 1e-9);
}

TEST(SimulatorTest, EqualInputsGiveEqualReports) {
  const auto once = [] {
    Server server;
    server.facts.num_blocks = 200;
    server.facts.max_model_len = 1000;
    Workload w = equal_requests(200, 90, 40, 3ms);
    for (std::size_t i = 0; i < w.requests.size(); ++i) w.requests[i].output_tokens = 1 + i * 37 % 200;
    return server.run(w);
  };
  const SimulateReport a = once(), b = once();
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.ttft_ms.p99, b.ttft_ms.p99);
  EXPECT_EQ(a.preemptions, b.preemptions);
}

}  // namespace
}  // namespace octavo
