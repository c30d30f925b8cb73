#include "capacity/kv_cost.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/check.h"
#include "capacity/fake_server.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint32_t kRounds = 5, kBursts = 20, kBurstSteps = kBlockTokens;
constexpr std::uint32_t kFirstLength = 840;  // bursts take it to 1,160
constexpr std::uint32_t kMaxLength = 2048;

Microseconds time_step(FakeServer& server) {
  const auto begin = Clock::now();
  const bool planned = server.plan();
  const auto middle = Clock::now();
  OCTAVO_CHECK(planned, "answers outlast the bursts");
  server.compute();
  const auto resumed = Clock::now();
  server.apply();
  return (middle - begin) + (Clock::now() - resumed);
}

}  // namespace

KvCostRow measure_cost(std::uint32_t running, bool prefix_caching, std::span<const GroupSpec> groups) {
  SchedulerConfig scheduler;
  scheduler.max_num_seqs = running;
  scheduler.max_num_batched_tokens = std::max(2048U, running);
  scheduler.max_model_len = kMaxLength;
  KvConfig kv;
  kv.block_tokens = kBlockTokens;
  kv.groups.assign(groups.begin(), groups.end());
  kv.num_blocks = running * (kMaxLength / kBlockTokens) * static_cast<std::uint32_t>(groups.size()) + 1;
  kv.max_seqs = running;
  kv.max_model_len = kMaxLength;
  kv.max_step_tokens = scheduler.max_num_batched_tokens;
  kv.prefix_caching = prefix_caching;

  std::vector<double> bursts;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    FakeServer server(scheduler, kv);
    for (std::uint32_t i = 0; i < running; ++i) {
      server.add(kFirstLength + i % kBlockTokens, kMaxLength - kFirstLength - kBlockTokens);
    }
    const Scheduler& s = server.scheduler();
    const std::uint64_t prompts = std::uint64_t{running} * kFirstLength;
    while (s.num_waiting() > 0 || s.counters().prompt_tokens < prompts) server.step();
    for (std::uint32_t i = 0; i < kBurstSteps; ++i) server.step();  // arrays reach their capacity
    for (std::uint32_t burst = 0; burst < kBursts; ++burst) {
      Microseconds taken{0};
      for (std::uint32_t i = 0; i < kBurstSteps; ++i) taken += time_step(server);
      bursts.push_back(taken.count() / kBurstSteps);
    }
  }
  std::ranges::sort(bursts);
  return {running, prefix_caching, bursts.front(), bursts[bursts.size() / 2]};
}

}  // namespace octavo
