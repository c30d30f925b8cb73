// The guard must catch what the bookkeeping could get wrong: each fault is made by hand here.
#include "kv/kv_guard.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace octavo {
namespace {

/// Two groups (a full one and one with a window), 12 blocks of 16 tokens, 4 host slots.
struct Machine {
  KvStore store{plan_groups(std::vector<KvLayerShape>{{2, 64, 0}, {2, 64, 32}}, KvType::kBF16, 16), 12};
  KvGuard guard{store, 4};

  static std::vector<TokenId> tokens(std::uint32_t count, std::int32_t from = 0) {
    std::vector<TokenId> out;
    for (std::uint32_t i = 0; i < count; ++i) out.push_back({from + static_cast<std::int32_t>(i)});
    return out;
  }
  void zero(const std::vector<BlockId>& blocks) {
    BlockOps ops;
    ops.zeros = blocks;
    store.zero(blocks);
    guard.follow(ops);
  }
  /// A prompt in fresh blocks, in the first group.
  void fill(std::uint64_t seq, const std::vector<BlockId>& blocks, const std::vector<TokenId>& known) {
    zero(blocks);
    guard.store({{seq}, {0}, 0, 0, blocks, known});
  }
  [[nodiscard]] std::string fault(const std::vector<BlockId>& blocks, const std::vector<TokenId>& known,
                                  std::uint32_t first_page = 0) const {
    return guard.find_fault({{7}, {0}, static_cast<std::uint32_t>(known.size()) - 1, first_page, blocks, known});
  }
  [[nodiscard]] std::span<std::byte> keys(std::uint32_t layer, std::uint32_t block) const {
    const PagedKv kv = store.view(layer);
    return {kv.base + block * kv.layer_stride_bytes, kv.v_offset};
  }
  [[nodiscard]] std::span<std::byte> values(std::uint32_t layer, std::uint32_t block) const {
    return {keys(layer, block).data() + store.view(layer).v_offset, store.view(layer).v_offset};
  }
};

bool all(std::span<const std::byte> bytes, int value) {
  return std::ranges::all_of(bytes, [&](std::byte b) { return b == static_cast<std::byte>(value); });
}

TEST(Guard, WhatARowStoredMayBeRead) {
  Machine m;
  m.fill(7, {{1}, {2}, {3}}, Machine::tokens(40));
  EXPECT_EQ(m.fault({{1}, {2}, {3}}, Machine::tokens(40)), "");
  EXPECT_EQ(m.fault({{1}, {2}}, Machine::tokens(32)), "") << "a prefix, too";
  EXPECT_EQ(m.fault({{3}}, Machine::tokens(40), 2), "") << "and what a window leaves of it";
}

TEST(Guard, ATableOfAnotherSequenceIsCaught) {
  Machine m;
  m.fill(7, {{1}, {2}, {3}}, Machine::tokens(40));
  m.fill(8, {{4}, {5}, {6}}, Machine::tokens(40, 500));
  EXPECT_EQ(m.fault({{1}, {5}, {3}}, Machine::tokens(40)),
            "sequence 7, group 0, page 1: block 5 holds something else at position 16");
}

TEST(Guard, EqualTokensBehindAnotherPrefixAreCaught) {
  Machine m;
  std::vector<TokenId> other = Machine::tokens(40);
  other[0].value = 99;
  m.fill(7, {{1}, {2}, {3}}, Machine::tokens(40));
  m.fill(8, {{4}, {5}, {6}}, other);
  EXPECT_NE(m.fault({{1}, {5}, {3}}, Machine::tokens(40)), "");
}

TEST(Guard, BlocksInTheWrongOrderOrPlaceAreCaught) {
  Machine m;
  m.fill(7, {{1}, {2}, {3}}, Machine::tokens(40));
  EXPECT_NE(m.fault({{2}, {1}, {3}}, Machine::tokens(40)), "");
  EXPECT_NE(m.fault({{2}, {3}}, Machine::tokens(24)), "");
  EXPECT_EQ(m.fault({{1}, {2}}, Machine::tokens(40)), "sequence 7, group 0, page 2: the table ends before it");
  EXPECT_EQ(m.fault({{1}, kNullBlock, {3}}, Machine::tokens(40)),
            "sequence 7, group 0, page 1: block 0 is the null block at position 16");
}

TEST(Guard, ABlockFreedTooEarlyIsCaught) {
  Machine m;
  m.fill(7, {{1}, {2}, {3}}, Machine::tokens(40));
  m.guard.bury(std::vector<BlockId>{{2}, {9}});
  EXPECT_EQ(m.fault({{1}, {2}, {3}}, Machine::tokens(40)),
            "sequence 7, group 0, page 1: block 2 is nobody's at position 16");
  m.zero({{2}});  // given to somebody else
  EXPECT_EQ(m.fault({{1}, {2}, {3}}, Machine::tokens(40)),
            "sequence 7, group 0, page 1: block 2 holds nothing at position 16");
}

TEST(Guard, AHoleInWhatWasComputedIsCaught) {
  Machine m;
  m.zero({{1}, {2}});
  const std::vector<BlockId> table = {{1}, {2}};
  m.guard.store({{7}, {0}, 0, 0, table, Machine::tokens(10)});
  m.guard.store({{7}, {0}, 11, 0, table, Machine::tokens(20)});
  EXPECT_EQ(m.fault(table, Machine::tokens(20)), "sequence 7, group 0, page 0: block 1 holds nothing at position 10");
}

TEST(Guard, AWriteIntoASharedBlockIsCaught) {
  Machine m;
  std::vector<TokenId> left = Machine::tokens(40), right = left;
  left.push_back({1}), right.push_back({2});
  m.fill(7, {{1}, {2}, {3}}, Machine::tokens(40));
  const std::vector<BlockId> shared = {{1}, {2}, {3}};
  m.guard.store({{7}, {0}, 40, 0, shared, left});
  m.guard.store({{8}, {0}, 40, 0, shared, right});  // without a copy
  EXPECT_NE(m.fault({{1}, {2}, {3}}, left), "");
}

TEST(Guard, StampsTravelWithCopiesAndSwaps) {
  Machine m;
  m.fill(7, {{1}, {2}}, Machine::tokens(20));
  BlockOps copy;
  copy.copies = {{{2}, {5}}};
  m.store.copy(copy.copies), m.guard.follow(copy);
  EXPECT_EQ(m.fault({{1}, {5}}, Machine::tokens(20)), "");
  BlockOps out;
  out.saves = {{{7}, {1}, {3}}, {{7}, {5}, {1}}};
  m.guard.follow(out);
  m.guard.bury(std::vector<BlockId>{{1}, {5}});
  BlockOps in;
  in.loads = {{{7}, {8}, {3}}, {{7}, {9}, {1}}};
  m.guard.follow(in);
  EXPECT_EQ(m.fault({{8}, {9}}, Machine::tokens(20)), "");
  EXPECT_NE(m.fault({{9}, {8}}, Machine::tokens(20)), "") << "loaded to the wrong page";
}

TEST(Guard, PoisonsTheFreedAndTheKeysOfTheFresh) {
  Machine m;
  const KvGroups& groups = m.store.groups();
  ASSERT_EQ(groups.groups.size(), 2U);
  const std::uint32_t layer = groups.layers[0].group == GroupId{0} ? 0 : 1;
  m.fill(7, {{1}}, Machine::tokens(16));
  EXPECT_TRUE(all(m.keys(layer, 1), 0xFF));
  EXPECT_TRUE(all(m.values(layer, 1), 0)) << "a masked lane multiplies them by +0";
  std::ranges::fill(m.keys(layer, 1), std::byte{1});
  const std::vector<BlockId> table = {{1}};
  m.guard.store({{7}, {0}, 15, 0, table, Machine::tokens(16)});
  EXPECT_TRUE(all(m.keys(layer, 1), 1)) << "fresh only once";
  m.guard.bury(std::vector<BlockId>{{1}, {2}});
  EXPECT_TRUE(all(m.keys(layer, 1), 0xFF));
  EXPECT_TRUE(all(m.values(layer, 1), 0xFF));
  EXPECT_TRUE(all(m.keys(layer, 2), 0)) << "what was never used stays untouched, and costs no memory";
}

TEST(Guard, SeesWhoWritesTheNullBlock) {
  Machine m;
  EXPECT_TRUE(m.guard.null_block_is_zero());
  m.keys(0, 0)[3] = std::byte{1};
  EXPECT_FALSE(m.guard.null_block_is_zero());
}

}  // namespace
}  // namespace octavo
