// A warm step takes nothing from the heap: every allocation of this program is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "sched/scheduler.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OCTAVO_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OCTAVO_SANITIZED 1
#endif

#ifndef OCTAVO_SANITIZED  // sanitizers bring a malloc of their own
namespace {
std::atomic<std::uint64_t> allocations = 0;
}

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* malloc(std::size_t bytes) { return ++allocations, __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) { return ++allocations, __libc_calloc(count, bytes); }
void* realloc(void* old, std::size_t bytes) { return ++allocations, __libc_realloc(old, bytes); }
}

namespace octavo {
namespace {

struct Warm {
  const char* name;
  KvMemory memory;
  bool caching;
};

class Allocation : public testing::TestWithParam<Warm> {};

TEST_P(Allocation, NoneInAWarmStep) {
  constexpr std::uint32_t kSeqs = 64, kPrompt = 100, kOutput = 400;
  KvConfig c;
  c.num_blocks = kSeqs * 2 * 32 + 1, c.groups = {{}, {64}}, c.max_seqs = kSeqs, c.max_model_len = 512;
  c.memory = GetParam().memory, c.prefix_caching = GetParam().caching;
  KvManager kv(c);
  SchedulerConfig config;
  config.max_num_seqs = kSeqs, config.max_model_len = c.max_model_len;
  const Fcfs policy;
  Scheduler scheduler(config, policy, kv);
  SeqLimits limits;
  limits.max_new_tokens = kOutput;
  for (std::uint32_t s = 0; s < kSeqs; ++s) {
    std::vector<TokenId> prompt(kPrompt);
    for (std::uint32_t i = 0; i < kPrompt; ++i) prompt[i].value = static_cast<std::int32_t>(i * 7 + s);
    ASSERT_EQ(scheduler.add({s + 1}, limits, prompt, Micros{s}).why, Refusal::Why::kNone);
  }
  StepPlan plan;
  StepResult result;
  const auto step = [&] {
    ASSERT_TRUE(scheduler.schedule(plan));
    scheduler.commit(plan);
    result.clear();
    for (const StepRow& row : plan.rows) {
      const auto begin = static_cast<std::uint32_t>(result.tokens.size());
      result.rows.push_back({row.seq, row.end(), begin, row.num_samples, RowEnd::kGoesOn});
      if (row.num_samples > 0) result.tokens.push_back({static_cast<std::int32_t>(row.end().value % 50)});
    }
    scheduler.apply(result);
  };
  for (std::uint32_t n = 0; n < 200; ++n) step();  // prompts, then decode: everything has reached its size
  ASSERT_EQ(scheduler.num_running(), kSeqs);
  const std::uint64_t before = allocations;
  for (std::uint32_t n = 0; n < 160; ++n) step();  // over ten block borders, while windows move
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_EQ(scheduler.num_running(), kSeqs);
}

INSTANTIATE_TEST_SUITE_P(Strategies, Allocation,
                         testing::Values(Warm{"Paged", KvMemory::kPaged, false}, Warm{"Cached", KvMemory::kPaged, true},
                                         Warm{"Dynamic", KvMemory::kDynamic, false},
                                         Warm{"Static", KvMemory::kStatic, false}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace octavo
#endif
