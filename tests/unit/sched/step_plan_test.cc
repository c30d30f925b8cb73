#include "sched/step_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace octavo {
namespace {

/// Two rows in two groups, a copy and a zero.
StepPlan small_plan() {
  StepPlan p;
  p.step = {7}, p.num_groups = 2, p.block_tokens = 16;
  p.rows = {{{1}, {30}, 0, 3, 1, 1, 0}, {{2}, {0}, 3, 2, 0, 0, 2}};
  p.tokens = {{5}, {6}, {7}, {8}, {9}};
  p.tables = {{0, 0, 3}, {1, 3, 2}, {0, 5, 1}, {0, 6, 1}};
  p.blocks = {{1}, {2}, {3}, {4}, {5}, {6}, {7}};
  p.admitted = {{{2}, 0, 0, 0, 0}};
  p.preempted = {{{3}, 12, 0}};
  p.finished = {{4}};
  p.ops.zeros = {{6}, {7}};
  p.ops.copies = {{{9}, {5}}};
  return p;
}

std::vector<std::byte> bytes_of(const StepPlan& plan) {
  std::vector<std::byte> out;
  serialize(plan, out);
  return out;
}

TEST(StepPlan, RoundTripsToEqualBytes) {
  StepPlan copy;
  ASSERT_TRUE(deserialize(bytes_of(small_plan()), copy).ok());
  EXPECT_EQ(bytes_of(copy), bytes_of(small_plan()));
  EXPECT_EQ(copy.step, StepId{7});
  EXPECT_EQ(copy.preempted[0].lost_tokens, 12U);
  ASSERT_TRUE(deserialize(bytes_of(StepPlan{}), copy).ok()) << "an empty plan is one, too";
  EXPECT_TRUE(copy.empty());
}

TEST(StepPlan, EveryBrokenInvariantIsNamed) {
  ASSERT_EQ(find_fault(small_plan()), nullptr);
  const std::vector<std::pair<const char*, std::function<void(StepPlan&)>>> faults = {
      {"rows need groups and blocks", [](StepPlan& p) { p.block_tokens = 0; }},
      {"one table per row and group", [](StepPlan& p) { p.tables.pop_back(); }},
      {"a row counts its tokens", [](StepPlan& p) { p.rows[0].num_logits = 4; }},
      {"a row counts its tokens", [](StepPlan& p) { p.rows[1].num_tokens = 0; }},
      {"a row samples at most once, from its logits", [](StepPlan& p) { p.rows[1].num_samples = 1; }},
      {"rows tile the tokens", [](StepPlan& p) { p.rows[1].tokens_begin = 4; }},
      {"rows tile the tokens", [](StepPlan& p) { p.tokens.push_back({1}); }},
      {"every token is known", [](StepPlan& p) { p.tokens[2].value = -1; }},
      {"one row per sequence", [](StepPlan& p) { p.rows[1].seq = {1}; }},
      {"positions are 32-bit", [](StepPlan& p) { p.rows[0].first_pos = {~0U}; }},
      {"tables lie inside the blocks", [](StepPlan& p) { p.tables[3].blocks_begin = 7; }},
      {"tables lie inside the blocks",
       [](StepPlan& p) {
         p.tables[3] = {0, ~0U, 2};
       }},
      {"a row owns where it writes", [](StepPlan& p) { p.rows[0].first_pos = {46}; }},
      {"a row owns where it writes", [](StepPlan& p) { p.tables[1].first_page = 2; }},
      {"a live page is a block", [](StepPlan& p) { p.blocks[0] = kNullBlock; }},
      {"one row writes a block", [](StepPlan& p) { p.blocks[5] = {3}; }},
      {"one operation writes a block", [](StepPlan& p) { p.ops.zeros.push_back({5}); }},
      {"the null block is never written", [](StepPlan& p) { p.ops.zeros.push_back(kNullBlock); }},
      {"no operation writes a copy's source", [](StepPlan& p) { p.ops.zeros.push_back({9}); }},
      {"one operation writes a block",
       [](StepPlan& p) {
         p.ops.loads = {{{9}, {6}, {1}}};
       }},
      {"no row touches what is loaded",
       [](StepPlan& p) {
         p.ops.loads = {{{9}, {1}, {1}}};
       }},
      {"a host slot is used once",
       [](StepPlan& p) {
         p.ops.saves = {{{8}, {1}, {1}}};
         p.ops.loads = {{{9}, {20}, {1}}};
       }},
  };
  for (const auto& [sentence, breaks] : faults) {
    StepPlan p = small_plan();
    breaks(p);
    EXPECT_STREQ(find_fault(p), sentence);
    StepPlan copy;
    EXPECT_FALSE(deserialize(bytes_of(p), copy).ok()) << sentence;
    EXPECT_TRUE(copy.empty());
  }
}

TEST(StepPlan, DamagedBytesAreRefusedOrStillAPlan) {
  const std::vector<std::byte> good = bytes_of(small_plan());
  StepPlan copy;
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(deserialize(std::span(good).first(n), copy).ok()) << n;
  std::mt19937 rng(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bad = good;
    for (int flips = 1 + static_cast<int>(rng() % 4); flips > 0; --flips) {
      bad[rng() % bad.size()] ^= static_cast<std::byte>(1U << (rng() % 8));
    }
    EXPECT_TRUE(!deserialize(bad, copy).ok() || find_fault(copy) == nullptr) << i;
  }
}

}  // namespace
}  // namespace octavo
