// Memory strategies, forks, swaps and events, each alone; the blast test (unit_sched) mixes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kv/block_hash.h"
#include "kv/kv_manager.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TokenId> tokens(std::uint32_t count) {
  std::vector<TokenId> out;
  for (std::uint32_t i = 0; i < count; ++i) out.push_back({static_cast<std::int32_t>(i)});
  return out;
}

KvConfig config_of(std::uint32_t blocks, KvMemory memory = KvMemory::kPaged, std::vector<GroupSpec> groups = {{}}) {
  KvConfig c;
  c.num_blocks = blocks, c.memory = memory, c.groups = std::move(groups), c.max_seqs = 8;
  c.max_model_len = 128, c.chunk_tokens = 32, c.host_blocks = 32;
  return c;
}

std::vector<std::uint32_t> ids(const KvManager& kv, std::uint64_t seq, std::uint32_t group = 0) {
  std::vector<std::uint32_t> out;
  for (const BlockId b : kv.table({seq}, {group}).blocks) out.push_back(b.value);
  return out;
}

/// One plan that seats a sequence where it is new, and computes it up to `end`.
bool compute(KvManager& kv, std::uint64_t seq, std::uint32_t end, BlockOps* shown = nullptr) {
  const std::vector<TokenId> known = tokens(end);
  BlockOps ops;
  kv.begin(ops);
  const bool fits = (kv.holds({seq}) || kv.admit({seq}, {known, {}}, {}, 0)) && kv.grow({seq}, {end});
  if (!fits) {
    kv.abandon();
    return false;
  }
  kv.settle({seq}, {known, {}}, {end});
  kv.commit();
  kv.processed({seq}, {end});
  if (shown != nullptr) *shown = ops;
  return true;
}

TEST(StaticMemory, ReservesTheLongestFromTheStart) {
  KvManager kv(config_of(20, KvMemory::kStatic));  // 19 blocks: two sequences of 8, and 3 that fit nobody
  ASSERT_TRUE(compute(kv, 1, 5));
  EXPECT_THAT(ids(kv, 1), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  ASSERT_TRUE(compute(kv, 2, 40));
  EXPECT_FALSE(compute(kv, 3, 1));
  const KvUsage u = kv.usage();
  EXPECT_EQ(u.reserved, 16U * 16);
  EXPECT_EQ(u.used, 45U);
  EXPECT_EQ(u.external, 3U * 16);
  EXPECT_EQ(kv.blocks_for(1), 8U);
  BlockOps ops;
  ASSERT_TRUE(compute(kv, 1, 128, &ops));  // to its end without taking or moving anything
  EXPECT_THAT(ops.copies, IsEmpty());
  EXPECT_EQ(ops.zeros.size(), 7U) << "reserved is not yet zeroed";
  kv.release({1}), kv.release({2});
  EXPECT_EQ(kv.counters().blocks_free, 19U);
}

TEST(DynamicMemory, GrowsInPlaceAndMovesWhenItMust) {
  KvManager kv(config_of(20, KvMemory::kDynamic));
  ASSERT_TRUE(compute(kv, 1, 20));
  EXPECT_THAT(ids(kv, 1), ElementsAre(1, 2));
  ASSERT_TRUE(compute(kv, 1, 40));  // in place
  EXPECT_THAT(ids(kv, 1), ElementsAre(1, 2, 3, 4));
  ASSERT_TRUE(compute(kv, 2, 10));
  EXPECT_THAT(ids(kv, 2), ElementsAre(5, 6));
  BlockOps ops;
  ASSERT_TRUE(compute(kv, 1, 65, &ops));  // the next one is in the way
  EXPECT_THAT(ids(kv, 1), ElementsAre(7, 8, 9, 10, 11, 12));
  ASSERT_EQ(ops.copies.size(), 3U) << "whole blocks that hold something";
  EXPECT_EQ(ops.copies[2].from, BlockId{3});
  EXPECT_EQ(ops.copies[2].to, BlockId{9});
  EXPECT_EQ(ops.zeros, (std::vector<BlockId>{{10}, {11}}));
  EXPECT_EQ(kv.counters().moved_runs, 1U);
  EXPECT_EQ(kv.counters().blocks_free, 19U - 8) << "the old run is free once the plan is committed";
  EXPECT_EQ(kv.usage().external, 1U * 16) << "of 4 and 7 free blocks in chunks of 2";
}

TEST(DynamicMemory, AMoveThatIsTakenBackLeavesNoTrace) {
  KvManager kv(config_of(20, KvMemory::kDynamic, {{}, {32}}));
  ASSERT_TRUE(compute(kv, 1, 20));
  ASSERT_TRUE(compute(kv, 2, 10));
  const std::uint64_t before = kv.state_hash();
  BlockOps ops;
  kv.begin(ops);
  ASSERT_TRUE(kv.grow({1}, {50}));
  kv.settle({1}, {}, {50});
  EXPECT_EQ(ops.copies.size(), 4U) << "two pages in two groups";
  kv.abandon();
  EXPECT_EQ(kv.state_hash(), before);
}

TEST(Fork, SharesAllBlocksAndCopiesTheOneItWritesInto) {
  KvManager kv(config_of(20));
  ASSERT_TRUE(compute(kv, 1, 40));  // blocks 1, 2 full, 3 half
  BlockOps ops;
  kv.begin(ops);
  ASSERT_TRUE(kv.fork({1}, {2}, {39}, 40, 0));
  EXPECT_THAT(ids(kv, 2), ElementsAre(1, 2, 3));
  EXPECT_EQ(kv.owners({3}), 2U);
  ASSERT_TRUE(kv.grow({2}, {40}));
  EXPECT_THAT(ids(kv, 2), ElementsAre(1, 2, 4));
  kv.settle({2}, {}, {40});
  ASSERT_EQ(ops.copies.size(), 1U);
  EXPECT_EQ(ops.copies[0].from, BlockId{3});
  EXPECT_EQ(ops.copies[0].to, BlockId{4});
  EXPECT_THAT(ops.zeros, IsEmpty());
  kv.commit();
  EXPECT_EQ(kv.owners({3}), 1U);
  ASSERT_TRUE(compute(kv, 1, 41, &ops)) << "the parent writes on in its own block";
  EXPECT_THAT(ops.copies, IsEmpty());
  kv.release({1});
  EXPECT_EQ(kv.owners({1}), 1U);
  kv.release({2});
  EXPECT_EQ(kv.counters().blocks_free, 19U);
}

TEST(Fork, ASharedBlockIsNotWrittenByTheParentEither) {
  KvManager kv(config_of(20));
  ASSERT_TRUE(compute(kv, 1, 40));
  BlockOps ops;
  kv.begin(ops);
  ASSERT_TRUE(kv.fork({1}, {2}, {39}, 40, 0));  // without a row yet
  kv.commit();
  ASSERT_TRUE(compute(kv, 1, 41, &ops));
  EXPECT_EQ(ops.copies.size(), 1U);
  EXPECT_THAT(ids(kv, 2), ElementsAre(1, 2, 3));
  ASSERT_TRUE(compute(kv, 2, 40, &ops));
  EXPECT_THAT(ops.copies, IsEmpty()) << "the last one left writes in place";
}

TEST(Fork, NotOnceTheParentsWindowHasMovedOn) {
  KvManager kv(config_of(40, KvMemory::kPaged, {{}, {20}}));
  ASSERT_TRUE(compute(kv, 1, 40));
  EXPECT_TRUE(kv.can_fork({1}, {39}));
  ASSERT_TRUE(compute(kv, 1, 80));
  EXPECT_FALSE(kv.can_fork({1}, {39}));
  EXPECT_FALSE(kv.can_fork({9}, {1})) << "nor from nobody";
}

TEST(Swap, MovesAllThatIsComputedThereAndBack) {
  KvManager kv(config_of(20, KvMemory::kPaged, {{}, {20}}));
  ASSERT_TRUE(compute(kv, 1, 40));  // three pages in the first group, two left in the window
  BlockOps ops;
  kv.begin(ops);
  ASSERT_TRUE(kv.swap_out({1}));
  EXPECT_EQ(ops.saves.size(), 5U);
  kv.commit();
  EXPECT_TRUE(kv.swapped({1}));
  EXPECT_FALSE(kv.holds({1}));
  EXPECT_EQ(kv.counters().blocks_free, 19U);
  EXPECT_EQ(kv.counters().host_free, 32U - 5);

  kv.begin(ops = {});
  EXPECT_FALSE(kv.swap_in({1}, 40, 17)) << "not beside so many that others need";
  ASSERT_TRUE(kv.swap_in({1}, 40, 0));
  EXPECT_EQ(ops.loads.size(), 5U);
  EXPECT_FALSE(kv.swapped({1}));
  EXPECT_EQ(kv.counters().host_free, 32U - 5) << "held until the plan is committed: no save may overwrite them";
  kv.commit();
  EXPECT_EQ(kv.counters().host_free, 32U);
  EXPECT_EQ(kv.table({1}, {1}).first_page, 1U);
  EXPECT_TRUE(compute(kv, 1, 41));
}

TEST(Swap, NeedsRoomOnTheHost) {
  KvConfig c = config_of(20);
  c.host_blocks = 2;
  KvManager kv(c);
  ASSERT_TRUE(compute(kv, 1, 40));
  const std::uint64_t before = kv.state_hash();
  BlockOps ops;
  kv.begin(ops);
  EXPECT_FALSE(kv.swap_out({1}));
  kv.commit();
  EXPECT_EQ(kv.state_hash(), before);
}

TEST(Swap, SavesTheOriginalOfABlockThatThePlanWouldCopy) {
  KvManager kv(config_of(20));
  ASSERT_TRUE(compute(kv, 1, 40));
  BlockOps ops;
  kv.begin(ops);
  ASSERT_TRUE(kv.fork({1}, {2}, {39}, 40, 0));
  ASSERT_TRUE(kv.grow({1}, {41}));  // gets a copy of block 3, and is preempted before its row is planned
  ASSERT_TRUE(kv.swap_out({1}));
  ASSERT_EQ(ops.saves.size(), 3U);
  EXPECT_EQ(ops.saves[2].block, BlockId{3});
  EXPECT_THAT(ops.copies, IsEmpty());
  kv.commit();
}

TEST(Events, SayWhatCanBeFound) {
  KvConfig c = config_of(6);
  c.prefix_caching = c.events = true;
  KvManager kv(c);
  const std::vector<TokenId> known = tokens(80);
  std::vector<BlockHash> chain;
  const BlockHash root = root_hash("model", "");
  BlockHash parent = root;
  for (std::size_t i = 0; i < 5; ++i)
    chain.push_back(parent = child_hash(parent, std::span(known).subspan(i * 16, 16)));
  const auto fill = [&](std::uint64_t seq, bool look_up) {
    BlockOps ops;
    kv.begin(ops);
    const SeqTokens t{known, chain, root};
    const PrefixHit hit = look_up ? kv.lookup(t) : PrefixHit{};
    ASSERT_TRUE(kv.admit({seq}, t, hit, 0) && kv.grow({seq}, {80}));
    kv.settle({seq}, t, {80});
    kv.commit();
  };
  KvEvents log;
  fill(1, true);
  kv.take_events(log);
  ASSERT_EQ(log.events.size(), 1U);
  EXPECT_EQ(log.events[0].kind, KvEvent::Kind::kStored);
  EXPECT_EQ(log.events[0].parent, root);
  EXPECT_EQ(log.events[0].num_blocks, 5U);
  EXPECT_EQ(log.tokens_of(log.events[0], 16).size(), 80U);
  EXPECT_EQ(log.tokens_of(log.events[0], 16)[79], known[79]);
  kv.release({1});
  fill(2, false);  // the same blocks again, without looking: five names are lost, then given anew
  kv.take_events(log);
  ASSERT_EQ(log.events.size(), 6U);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(log.events[i].kind, KvEvent::Kind::kRemoved);
  EXPECT_EQ(log.events[5].kind, KvEvent::Kind::kStored);
  EXPECT_EQ(log.events[5].number, 7U);
  kv.release({2});
  ASSERT_TRUE(kv.reset_prefix_cache());
  kv.take_events(log);
  ASSERT_EQ(log.events.size(), 1U);
  EXPECT_EQ(log.events[0].kind, KvEvent::Kind::kCleared);
  kv.take_events(log);
  EXPECT_THAT(log.events, IsEmpty());
}

}  // namespace
}  // namespace octavo
