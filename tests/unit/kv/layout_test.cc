#include "kv/layout.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

namespace octavo {
namespace {

std::vector<KvLayerShape> every_nth_full(std::uint32_t layers, std::uint32_t n, std::uint32_t window) {
  std::vector<KvLayerShape> out;
  for (std::uint32_t i = 0; i < layers; ++i) out.push_back({1, 256, (i + 1) % n == 0 ? 0 : window});
  return out;
}

/// Every layer has its own bytes in every page, inside the page.
void expect_disjoint(const KvGroups& g) {
  std::map<std::uint32_t, std::set<std::pair<std::uint64_t, std::uint64_t>>> spans;  // by group
  for (const KvPlacement& p : g.layers) {
    EXPECT_LE(p.offset + p.layout.layer_bytes, g.slice_bytes());
    EXPECT_LT(p.slice, g.num_slices);
    EXPECT_EQ(p.offset % 64, 0U);
    spans[p.group.value].insert({p.slice * g.slice_bytes() + p.offset, p.layout.layer_bytes});
  }
  for (const auto& [group, parts] : spans) {
    std::uint64_t end = 0;
    for (const auto& [begin, bytes] : parts) {
      EXPECT_GE(begin, end);
      end = begin + bytes;
    }
    EXPECT_EQ(parts.size(), g.groups[group].num_layers);
    EXPECT_LE(end, g.page_bytes);
  }
  EXPECT_EQ(g.slice_bytes() * g.num_slices, g.page_bytes);
  EXPECT_EQ(g.slice_bytes() % 64, 0U);
}

TEST(Layout, UniformModelIsOneGroup) {
  const std::vector<KvLayerShape> layers(30, {3, 64, 0});  // SmolLM2-135M
  const KvGroups g = plan_groups(layers, KvType::kBF16, 16);
  ASSERT_EQ(g.groups.size(), 1U);
  EXPECT_EQ(g.num_slices, 30U);
  EXPECT_EQ(g.padding_bytes, 0U);
  EXPECT_EQ(g.payload_bytes_per_token, 30U * 3 * 64 * 2 * 2);
  EXPECT_EQ(g.charged_bytes_per_token(), g.payload_bytes_per_token);
  for (std::uint32_t i = 0; i < 30; ++i) {
    EXPECT_EQ(g.layers[i].group, GroupId{0});
    EXPECT_EQ(g.layers[i].arena, i);
    EXPECT_EQ(g.layers[i].slice, i);
  }
  expect_disjoint(g);
}

TEST(Layout, Gemma3Of270MIsSixGroupsOfThree) {
  const KvGroups g = plan_groups(every_nth_full(18, 6, 512), KvType::kBF16, 16);
  ASSERT_EQ(g.groups.size(), 6U);
  std::uint32_t full = 0;
  for (const KvGroup& group : g.groups) {
    EXPECT_EQ(group.num_layers, 3U);
    full += group.window == 0;
  }
  EXPECT_EQ(full, 1U);
  EXPECT_EQ(g.num_slices, 3U);
  EXPECT_EQ(g.padding_bytes, 0U);
  EXPECT_EQ(g.layers[5].arena, 0U);   // the first full layer
  EXPECT_EQ(g.layers[17].arena, 2U);  // the last one
  EXPECT_EQ(g.groups[g.layers[5].group.value].window, 0U);
  expect_disjoint(g);
}

TEST(Layout, PaddingIsCountedWhenLayersDoNotDivide) {
  const KvGroups g = plan_groups(every_nth_full(34, 6, 1024), KvType::kBF16, 16);  // 5 full, 29 window
  EXPECT_EQ(g.groups.size(), 7U);
  EXPECT_EQ(g.padding_bytes, make_kv_layout({1, 256, 0}, KvType::kBF16, 16).layer_bytes);
  EXPECT_GT(g.charged_bytes_per_token(), g.payload_bytes_per_token);
  expect_disjoint(g);

  const KvGroups lopsided = plan_groups(every_nth_full(61, 2, 1024), KvType::kBF16, 16);  // 30 full, 31 window
  EXPECT_LE(lopsided.padding_bytes * 6, lopsided.payload_bytes_per_token * 16);
  expect_disjoint(lopsided);
}

TEST(Layout, LayersOfDifferentBytesShareAPage) {
  std::vector<KvLayerShape> layers;
  for (int i = 0; i < 12; ++i) layers.push_back(i % 3 == 2 ? KvLayerShape{4, 128, 0} : KvLayerShape{2, 128, 256});
  const KvGroups g = plan_groups(layers, KvType::kF32, 32);
  EXPECT_EQ(g.groups.size(), 2U);  // 4 layers of 2x and 8 of x
  EXPECT_EQ(g.padding_bytes, 0U);
  expect_disjoint(g);
}

TEST(Layout, OddHeadSizesArePaddedToCacheLines) {
  const KvLayout l = make_kv_layout({1, 1, 0}, KvType::kF16, 16);
  EXPECT_EQ(l.k_cell_bytes, 64U);
  EXPECT_EQ(l.payload_bytes_per_token, 4U);
  EXPECT_EQ(l.layer_bytes, 128U);
}

TEST(Layout, BlockSizeStacksCells) {
  for (std::uint32_t tokens : {16U, 32U, 64U, 128U, 256U}) {
    const KvLayout l = make_kv_layout({3, 64, 0}, KvType::kBF16, tokens);
    EXPECT_EQ(l.k_cell_bytes, 16U * 64 * 2);
    EXPECT_EQ(l.v_offset, l.k_cell_bytes * (tokens / 16));
    EXPECT_EQ(l.layer_bytes, l.payload_bytes_per_token * tokens);
  }
}

TEST(Layout, WindowsBoundWhatASequenceHolds) {
  EXPECT_EQ(pages_held(0, 1000, 16, 512), 63U);
  EXPECT_EQ(pages_held(512, 100, 16, 512), 7U);
  // The worst start of 511 + 512 live positions: one in the first page, the rest behind it.
  EXPECT_EQ(pages_held(512, 1'000'000, 16, 512), (511U + 512 - 2) / 16 + 2);
  EXPECT_EQ(pages_held(1, 1'000'000, 16, 1), 1U);
  for (std::uint32_t window : {1U, 2U, 15U, 16U, 17U, 40U}) {
    for (std::uint32_t step : {1U, 5U, 16U, 33U}) {
      std::uint64_t most = 0;
      for (std::uint64_t begin = 0; begin < 200; ++begin) {
        const std::uint64_t first = begin < window ? 0 : begin + 1 - window;
        most = std::max(most, (begin + step - 1) / 16 - first / 16 + 1);
      }
      EXPECT_EQ(pages_held(window, 10'000, 16, step), most) << window << " " << step;
    }
  }
}

}  // namespace
}  // namespace octavo
