#include "kv/kv_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "kv/block_hash.h"

namespace octavo {
namespace {

using testing::ElementsAre;

std::vector<TokenId> tokens(std::int32_t first, std::uint32_t count) {
  std::vector<TokenId> out;
  for (std::uint32_t i = 0; i < count; ++i) out.push_back({first + static_cast<std::int32_t>(i)});
  return out;
}

std::vector<BlockHash> chain_of(const std::vector<TokenId>& ids, std::string_view salt = "") {
  std::vector<BlockHash> chain;
  BlockHash parent = root_hash("model", salt);
  for (std::size_t i = 0; i + 16 <= ids.size(); i += 16) {
    chain.push_back(parent = child_hash(parent, std::span(ids).subspan(i, 16)));
  }
  return chain;
}

KvConfig config_of(std::uint32_t blocks, bool caching, std::vector<GroupSpec> groups = {{}}) {
  KvConfig c;
  c.num_blocks = blocks, c.prefix_caching = caching, c.groups = std::move(groups), c.max_seqs = 8;
  return c;
}

/// Looks up, admits and fills a whole sequence in one plan. Returns the cached tokens, or -1 on shortage.
int fill(KvManager& kv, std::uint64_t seq, const std::vector<TokenId>& ids, std::string_view salt = "") {
  const std::vector<BlockHash> chain = chain_of(ids, salt);
  BlockOps ops;
  kv.begin(ops);
  const PrefixHit hit = kv.lookup({ids, chain});
  const Pos end{static_cast<std::uint32_t>(ids.size())};
  if (!kv.admit({seq}, {ids, chain}, hit, 0) || !kv.grow({seq}, end)) {
    kv.abandon();
    return -1;
  }
  kv.settle({seq}, {ids, chain}, end);
  kv.commit();
  kv.processed({seq}, end);
  return static_cast<int>(hit.num_tokens);
}

TEST(Manager, AFailedAdmissionLeavesNoTraceAlsoWhenPartWasAHit) {
  KvManager kv(config_of(11, true));
  EXPECT_EQ(fill(kv, 0, tokens(0, 55)), 0);
  kv.release({0});
  const std::uint64_t before = kv.state_hash();
  std::vector<TokenId> longer = tokens(0, 48);
  const std::vector<TokenId> rest = tokens(1000, 120);
  longer.insert(longer.end(), rest.begin(), rest.end());
  EXPECT_EQ(fill(kv, 1, longer), -1);
  EXPECT_EQ(kv.state_hash(), before);
  EXPECT_EQ(fill(kv, 1, tokens(5000, 161)), -1);
  EXPECT_EQ(kv.state_hash(), before);
}

TEST(Manager, ALookupHitsOnlyEqualTokensSaltAndModel) {
  KvManager kv(config_of(20, true));
  EXPECT_EQ(fill(kv, 0, tokens(0, 40), "a"), 0);
  EXPECT_EQ(fill(kv, 1, tokens(0, 40), "b"), 0);
  EXPECT_EQ(fill(kv, 2, tokens(0, 40), "a"), 32);
  EXPECT_EQ(fill(kv, 3, tokens(1, 40), "a"), 0);
  EXPECT_EQ(fill(kv, 4, tokens(0, 32), "a"), 16) << "a full hit computes its last block again";
  EXPECT_EQ(fill(kv, 5, tokens(0, 33), "a"), 32);
}

TEST(Manager, EqualNamesOfOtherTokensAreNotAHit) {
  KvManager kv(config_of(20, true));
  const std::vector<TokenId> stored = tokens(0, 33), asked = tokens(100, 33);
  const std::vector<BlockHash> chain = chain_of(stored);  // a collision of the whole chain
  ASSERT_EQ(fill(kv, 0, stored), 0);
  EXPECT_EQ(kv.lookup({stored, chain}).num_tokens, 32U);
  EXPECT_EQ(kv.lookup({asked, chain}).num_tokens, 0U);
}

TEST(Manager, WindowPagesGoFreeOnceProcessed) {
  KvManager kv(config_of(40, false, {{}, {32}}));
  BlockOps ops;
  kv.begin(ops);
  ASSERT_TRUE(kv.admit({0}, {}, {}, 0));
  ASSERT_TRUE(kv.grow({0}, {100}));
  kv.settle({0}, {}, {100});
  kv.commit();
  EXPECT_EQ(kv.table({0}, {1}).first_page, 0U);
  EXPECT_EQ(kv.table({0}, {1}).blocks.size(), 7U);
  kv.processed({0}, {100});  // the query at 100 reads (68, 100]
  EXPECT_EQ(kv.table({0}, {0}).blocks.size(), 7U);
  EXPECT_EQ(kv.table({0}, {1}).first_page, 4U);
  EXPECT_EQ(kv.table({0}, {1}).blocks.size(), 3U);
  EXPECT_EQ(kv.counters().blocks_free, 39U - 10);
  kv.release({0});
  EXPECT_EQ(kv.counters().blocks_free, 39U);
}

TEST(Manager, AWindowGroupNeedsOnlyItsLastWindowForAHit) {
  KvManager kv(config_of(60, true, {{}, {32}}));
  const std::vector<TokenId> ids = tokens(0, 200);
  ASSERT_EQ(fill(kv, 0, ids), 0);  // window pages 0..9 went free, named
  EXPECT_EQ(fill(kv, 1, tokens(0, 201)), 192);
  const TableView window = kv.table({1}, {1});
  EXPECT_EQ(window.first_page, (201U + 1 - 32) / 16);
  kv.release({0}), kv.release({1});
  // Evict what was freed first: the early window pages. The long hit stays real, the short one is gone.
  ASSERT_EQ(fill(kv, 2, tokens(9000, 16 * 18)), 0);
  kv.release({2});
  EXPECT_EQ(fill(kv, 3, tokens(0, 201)), 192);
  EXPECT_EQ(fill(kv, 4, tokens(0, 65)), 0);
}

TEST(Manager, TwoSequencesOfOnePlanShare) {
  KvManager kv(config_of(20, true));
  const std::vector<TokenId> ids = tokens(0, 40);
  const std::vector<BlockHash> chain = chain_of(ids);
  BlockOps ops;
  kv.begin(ops);
  ASSERT_TRUE(kv.admit({0}, {ids, chain}, kv.lookup({ids, chain}), 0));
  ASSERT_TRUE(kv.grow({0}, {40}));
  EXPECT_EQ(kv.lookup({ids, chain}).num_tokens, 0U) << "grown is not yet settled";
  kv.settle({0}, {ids, chain}, {40});
  const PrefixHit hit = kv.lookup({ids, chain});
  EXPECT_EQ(hit.num_tokens, 32U);
  EXPECT_EQ(hit.blocks_in_use, 2U);
  ASSERT_TRUE(kv.admit({1}, {ids, chain}, hit, 0));
  ASSERT_TRUE(kv.grow({1}, {40}));
  kv.settle({1}, {ids, chain}, {40});
  EXPECT_THAT(ops.zeros, ElementsAre(BlockId{1}, BlockId{2}, BlockId{3}, BlockId{4}));
  kv.commit();
  EXPECT_EQ(kv.owners({1}), 2U);
}

TEST(Manager, AFailedStepIsUnpublished) {
  KvManager kv(config_of(20, true));
  ASSERT_EQ(fill(kv, 0, tokens(0, 70)), 0);
  kv.unpublish({0}, {20});
  kv.release({0});
  EXPECT_EQ(fill(kv, 1, tokens(0, 70)), 16);
}

TEST(Manager, ResetClearsTheCacheOnlyWhenNothingIsHeld) {
  KvManager kv(config_of(20, true));
  ASSERT_EQ(fill(kv, 0, tokens(0, 70)), 0);
  EXPECT_FALSE(kv.reset_prefix_cache());
  kv.release({0});
  EXPECT_EQ(kv.counters().blocks_cached, 4U);
  EXPECT_TRUE(kv.reset_prefix_cache());
  EXPECT_EQ(kv.counters().blocks_cached, 0U);
  EXPECT_EQ(fill(kv, 1, tokens(0, 70)), 0);
}

TEST(Manager, LongestIsWhatThePoolHolds) {
  KvConfig c = config_of(11, false);
  EXPECT_EQ(KvManager(c).longest(), 160U);
  c.max_model_len = 100;
  EXPECT_EQ(KvManager(c).longest(), 100U);
  c.groups = {{}, {32}}, c.max_step_tokens = 16, c.max_model_len = 4096;
  KvManager kv(c);
  EXPECT_TRUE(kv.can_ever_hold(kv.longest()));
  EXPECT_FALSE(kv.can_ever_hold(kv.longest() + 1));
}

/// Random planning calls, taken back at random heights: everything that decides what comes next is as it was.
TEST(Manager, RewindAndAbandonLeaveNoTrace) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(rng() % n); };
    KvConfig c = config_of(12 + pick(30), pick(3) > 0,
                           pick(2) > 0 ? std::vector<GroupSpec>{{}} : std::vector<GroupSpec>{{}, {20}});
    c.memory = pick(2) > 0 ? KvMemory::kPaged : pick(2) > 0 ? KvMemory::kDynamic : KvMemory::kStatic;
    c.prefix_caching &= c.memory == KvMemory::kPaged;
    c.chunk_tokens = 32, c.max_model_len = 200;
    c.host_blocks = pick(20);
    KvManager kv(c);
    std::vector<std::vector<TokenId>> known(8);
    std::vector<std::uint32_t> end(8, 0), kept(8, 0);
    BlockOps ops;
    for (int plan = 0; plan < 12; ++plan) {
      ops = {};
      const std::uint64_t at_begin = kv.state_hash();
      const auto end_at_begin = end;
      kv.begin(ops);
      KvMark mark = kv.mark();
      std::uint64_t at_mark = at_begin;
      std::set<std::uint32_t> loaded;  // never shrinks within a plan: then some calls are not made, no more
      auto end_at_mark = end;
      for (int call = 0; call < 20; ++call) {
        const std::uint32_t s = pick(8);
        if (pick(6) == 0) {
          kv.release({s}), end[s] = 0;
        } else if (pick(5) == 0 && end[s] > 0) {
          if (kv.swap_out({s})) kept[s] = end[s], end[s] = 0;
        } else if (kv.swapped({s})) {
          if (kv.swap_in({s}, 1, 0)) loaded.insert(s), end[s] = kept[s];
        } else if (loaded.contains(s)) {
          continue;  // no row in the plan that loads it
        } else if (const std::uint32_t from = pick(8); pick(4) == 0 && from != s && end[s] == 0 && !kv.holds({s}) &&
                                                       end[from] > 1 && kv.can_fork({from}, {end[from] - 1})) {
          known[s] = known[from];
          if (kv.fork({from}, {s}, {end[from] - 1}, end[from], 0)) end[s] = end[from] - 1;
        } else if (pick(6) == 0) {
          kv.rewind(mark), end = end_at_mark;
          ASSERT_EQ(kv.state_hash(), at_mark);
        } else if (pick(6) == 0) {
          mark = kv.mark(), at_mark = kv.state_hash(), end_at_mark = end;
        } else {
          if (end[s] == 0 && !kv.holds({s})) {
            known[s] = tokens(static_cast<std::int32_t>(pick(2)), 200);
            const auto chain = chain_of(known[s]);
            const auto shown = std::span(known[s]).first(1 + pick(120));
            const PrefixHit hit = kv.lookup({shown, chain});
            if (!kv.admit({s}, {shown, chain}, hit, pick(3))) continue;
            end[s] = hit.num_tokens;
          }
          const Pos to{std::min(200U, end[s] + 1 + pick(50))};
          if (kv.grow({s}, to)) {
            const auto chain = chain_of(known[s]);
            kv.settle({s}, {known[s], chain}, to), end[s] = to.value;
          }
        }
      }
      if (pick(2) == 0) {
        kv.abandon(), end = end_at_begin;
        ASSERT_EQ(kv.state_hash(), at_begin);
      } else {
        kv.commit();
        for (std::uint32_t s = 0; s < 8; ++s) kv.processed({s}, {end[s]});
      }
    }
    for (std::uint32_t s = 0; s < 8; ++s) kv.release({s});
    EXPECT_EQ(kv.counters().blocks_free, kv.counters().blocks_total);
  }
}

}  // namespace
}  // namespace octavo
