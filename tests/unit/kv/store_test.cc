#include "kv/kv_store.h"

#include "kv/kv_host_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace octavo {
namespace {

std::vector<KvLayerShape> mixed() {
  std::vector<KvLayerShape> layers;
  for (int i = 0; i < 12; ++i) layers.push_back(i % 3 == 2 ? KvLayerShape{4, 128, 0} : KvLayerShape{2, 128, 256});
  return layers;
}

std::span<std::byte> block_of(const KvStore& store, std::uint32_t layer, std::uint32_t block) {
  const PagedKv kv = store.view(layer);
  return {kv.base + block * kv.layer_stride_bytes, std::size_t{kv.num_kv_heads} * kv.head_stride_bytes};
}

TEST(Store, LayersOfAGroupNeverOverlap) {
  const KvGroups groups = plan_groups(mixed(), KvType::kBF16, 16);
  KvStore store(groups, 5);
  EXPECT_EQ(store.bytes(), groups.page_bytes * 5);
  // Each layer writes its mark over the block its group owns; then every mark is still whole.
  const auto block = [&](std::uint32_t layer) { return 1 + groups.layers[layer].group.value; };
  const auto mark = [](std::uint32_t layer) { return static_cast<std::byte>(layer + 1); };
  for (std::uint32_t l = 0; l < 12; ++l) std::ranges::fill(block_of(store, l, block(l)), mark(l));
  for (std::uint32_t l = 0; l < 12; ++l) {
    EXPECT_TRUE(std::ranges::all_of(block_of(store, l, block(l)), [&](std::byte b) { return b == mark(l); })) << l;
    EXPECT_TRUE(std::ranges::all_of(block_of(store, l, 0), [](std::byte b) { return b == std::byte{0}; })) << "null";
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block_of(store, l, block(l)).data()) % 64, 0U);
  }
}

TEST(Store, CopiesAndZerosWholePages) {
  KvStore store(plan_groups(std::vector<KvLayerShape>(3, {2, 64, 0}), KvType::kF32, 32), 4);
  for (std::uint32_t l = 0; l < 3; ++l) std::ranges::fill(block_of(store, l, 1), static_cast<std::byte>(7 + l));
  const BlockCopy copy{{1}, {3}};
  store.copy({&copy, 1});
  const BlockId first{1};
  store.zero({&first, 1});
  for (std::uint32_t l = 0; l < 3; ++l) {
    EXPECT_TRUE(
        std::ranges::all_of(block_of(store, l, 3), [&](std::byte b) { return b == static_cast<std::byte>(7 + l); }));
    for (std::uint32_t b : {0U, 1U, 2U}) {
      EXPECT_TRUE(std::ranges::all_of(block_of(store, l, b), [](std::byte x) { return x == std::byte{0}; })) << b;
    }
  }
}

TEST(HostStore, BringsBackWhatItSavedAndNoticesDamage) {
  KvStore store(plan_groups(mixed(), KvType::kBF16, 16), 6);
  KvHostStore host(store, 2);
  ThreadPool pool(2);
  for (std::uint32_t l = 0; l < 12; ++l) {
    std::ranges::fill(block_of(store, l, 1), static_cast<std::byte>(l + 1));
    std::ranges::fill(block_of(store, l, 2), static_cast<std::byte>(l + 101));
  }
  const std::vector<BlockMove> saves = {{{7}, {1}, {2}}, {{8}, {2}, {1}}};
  host.save(saves, pool);
  const std::vector<BlockId> used = {{1}, {2}};
  store.zero(used);

  std::vector<SeqId> failed;
  const std::vector<BlockMove> loads = {{{7}, {4}, {2}}, {{8}, {5}, {1}}};
  host.start_loads(loads);
  host.finish_loads(failed);
  EXPECT_TRUE(failed.empty());
  std::vector<std::byte> page(store.groups().page_bytes), kept(page.size());
  for (const BlockMove& move : loads) {
    store.read_page(move.block, page);
    EXPECT_TRUE(std::ranges::equal(page, host.page(move.slot)));
  }
  host.page({1})[100] ^= std::byte{4};
  host.start_loads(loads);
  host.finish_loads(failed);
  EXPECT_EQ(failed, std::vector<SeqId>{{8}});
}

TEST(Store, ViewSaysWhatLayoutSays) {
  KvStore store(plan_groups(std::vector<KvLayerShape>(2, {3, 64, 0}), KvType::kBF16, 64), 3);
  const PagedKv kv = store.view(1);
  EXPECT_EQ(kv.k_cell_bytes, 16U * 64 * 2);
  EXPECT_EQ(kv.v_offset, 4 * kv.k_cell_bytes);
  EXPECT_EQ(kv.head_stride_bytes, 8 * kv.k_cell_bytes);
  EXPECT_EQ(kv.layer_stride_bytes, 3 * kv.head_stride_bytes);
  EXPECT_EQ(kv.block_tokens, 64U);
  EXPECT_EQ(kv.base - store.view(0).base, static_cast<std::ptrdiff_t>(3 * kv.layer_stride_bytes));
}

}  // namespace
}  // namespace octavo
