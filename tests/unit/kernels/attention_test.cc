// Attention: one answer, however the work is cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/float_mode.h"
#include "base/memory.h"
#include "unit/kernels/kernel_case.h"

namespace octavo {
namespace {

/// A sequence of queries, keys and values, and what a layer does with them. The last `queries` positions are asked.
struct Layer {
  KvType type = KvType::kBF16;
  std::uint32_t head_dim = 64, kv_heads = 2, group = 3;
  std::uint32_t window = 0;
  float soft_cap = 0;
  bool sinks = false;
  std::uint32_t length = 300, queries = 20;

  [[nodiscard]] std::uint32_t heads() const { return kv_heads * group; }
};

struct Data {
  std::vector<float> q, k, v, sinks;
  AttnSpec spec{};

  Data(const Layer& layer, Random& random)
      : q(random.row(std::size_t{layer.length} * layer.heads() * layer.head_dim)),
        k(random.row(std::size_t{layer.length} * layer.kv_heads * layer.head_dim)),
        v(random.row(std::size_t{layer.length} * layer.kv_heads * layer.head_dim)),
        sinks(random.row(layer.heads())) {
    spec = {.num_heads = layer.heads(),
            .window = layer.window,
            .scale = 1.3F / std::sqrt(static_cast<float>(layer.head_dim)),
            .soft_cap = layer.soft_cap,
            .sinks = layer.sinks ? sinks.data() : nullptr};
  }
};

/// How the work is cut. Nothing of this may change a bit.
struct Cut {
  std::uint32_t block_tokens = 16, chunk = 1000, tile = kAttnTileTokens;
  bool partial = false;  // by splits and merge()
};

/// Blocks in random order, full of stale values and keys that are no numbers.
class Store {
 public:
  Store(const Layer& layer, std::uint32_t block_tokens, Random& random) {
    const std::uint64_t number = layer.type == KvType::kF32 ? 4 : 2;
    const std::uint32_t cells = block_tokens / kCellTokens, blocks = layer.length / block_tokens + 3;
    kv_.type = layer.type;
    kv_.block_tokens = block_tokens;
    kv_.num_kv_heads = layer.kv_heads;
    kv_.head_dim = layer.head_dim;
    kv_.k_cell_bytes = kv_.v_cell_bytes = kCellTokens * layer.head_dim * number;
    kv_.v_offset = cells * kv_.k_cell_bytes;
    kv_.head_stride_bytes = 2 * kv_.v_offset;
    kv_.layer_stride_bytes = layer.kv_heads * kv_.head_stride_bytes + 128;  // another layer's bytes between
    buffer_ = AlignedBuffer(blocks * kv_.layer_stride_bytes);
    kv_.base = buffer_.data();
    // Any finite numbers; the pattern has both signs and is not a multiple of a row.
    const std::uint16_t stale[] = {0x4123, 0xC2F1, 0x1234, 0x3333, 0xBEEF, 0x5A5A, 0x8001};
    for (std::size_t i = 0; i < buffer_.size() / 2; ++i) buffer_.as<std::uint16_t>()[i] = stale[i % std::size(stale)];
    // Keys of masked lanes may be anything: they are NaN of every type, as in blocks that nobody has written.
    for (std::uint32_t b = 0; b < blocks; ++b) {
      for (std::uint32_t h = 0; h < layer.kv_heads; ++h) {
        std::byte* keys = kv_.base + b * kv_.layer_stride_bytes + h * kv_.head_stride_bytes;
        std::fill_n(keys, kv_.v_offset, std::byte{0xFF});
      }
    }
    table_.resize(blocks);
    for (std::uint32_t i = 0; i < blocks; ++i) table_[i] = BlockId{i};
    for (std::uint32_t i = blocks; i-- > 1;) std::swap(table_[i], table_[random.below(i + 1)]);
  }

  [[nodiscard]] const PagedKv& kv() const { return kv_; }
  /// The table starts at the first page that the window of `first_pos` needs.
  [[nodiscard]] KvRow row(std::uint32_t first_pos, std::uint32_t tokens, std::uint32_t window) const {
    const std::uint32_t oldest = window == 0 || first_pos + 1 <= window ? 0 : first_pos + 1 - window;
    const std::uint32_t page = oldest / kv_.block_tokens;
    return {.blocks = table_.data() + page,
            .first_page = page,
            .num_blocks = static_cast<std::uint32_t>(table_.size()) - page,
            .first_pos = first_pos,
            .num_tokens = tokens,
            .act_row = first_pos};
  }

 private:
  PagedKv kv_;
  AlignedBuffer buffer_;
  std::vector<BlockId> table_;
};

class Attention : public testing::Test {
 protected:
  /// The outputs of the asked positions.
  std::vector<float> run(const Kernels& kernels, const Layer& layer, const Data& data, const Cut& cut) {
    const FloatMode mode;
    const Store store(layer, cut.block_tokens, random_);
    std::vector<float> out(data.q.size(), -1.0F);
    const AlignedBuffer scratch(attend_scratch_bytes(layer.group, layer.head_dim));
    const AlignedBuffer states(std::size_t{layer.length / kSplitTokens + 1} * kAttnTileTokens * layer.group *
                               attn_state_floats(layer.head_dim) * sizeof(float));

    const std::uint32_t asked = layer.length - layer.queries;
    const KvRow history = store.row(0, asked, 0);
    for (std::uint32_t t = 0; t < asked; ++t) kernels.store_kv(store.kv(), history, t, data.k.data(), data.v.data());

    for (std::uint32_t begin = asked; begin < layer.length; begin += cut.chunk) {
      const std::uint32_t tokens = std::min(cut.chunk, layer.length - begin);
      const KvRow row = store.row(begin, tokens, layer.window);
      for (std::uint32_t t = 0; t < tokens; ++t) kernels.store_kv(store.kv(), row, t, data.k.data(), data.v.data());
      for (std::uint32_t t = 0; t < tokens; t += cut.tile) {
        const std::uint32_t end = std::min(t + cut.tile, tokens), first = begin + t;
        const std::uint32_t oldest = layer.window == 0 || first + 1 <= layer.window ? 0 : first + 1 - layer.window;
        const std::uint32_t split_begin = oldest / kSplitTokens, split_end = (begin + end - 1) / kSplitTokens + 1;
        for (std::uint32_t h = 0; h < layer.kv_heads; ++h) {
          AttnTask task{.row = 0,
                        .kv_head = h,
                        .token_begin = t,
                        .token_end = end,
                        .split_begin = split_begin,
                        .split_end = split_end,
                        .state = AttnTask::kDirect};
          if (!cut.partial) {
            kernels.attend(store.kv(), data.spec, row, task, data.q.data(), out.data(), nullptr, scratch.data());
            continue;
          }
          for (std::uint32_t split = split_end; split-- > split_begin;) {  // any order
            task.split_begin = split;
            task.split_end = split + 1;
            task.state = (split - split_begin) * (end - t) * layer.group;
            kernels.attend(store.kv(), data.spec, row, task, data.q.data(), out.data(), states.as<float>(),
                           scratch.data());
          }
          for (std::uint32_t token = t; token < end; ++token) {
            const MergeTask merge{.act_row = begin + token,
                                  .kv_head = h,
                                  .num_splits = split_end - split_begin,
                                  .state_begin = (token - t) * layer.group,
                                  .states_per_split = (end - t) * layer.group};
            kernels.merge(data.spec, layer.kv_heads, layer.head_dim, merge, states.as<float>(), out.data());
          }
        }
      }
    }
    return {out.begin() + static_cast<std::ptrdiff_t>(std::size_t{asked} * layer.heads() * layer.head_dim), out.end()};
  }

  /// Softmax attention in double over the exact inputs.
  static std::vector<double> naive(const Layer& layer, const Data& data) {
    std::vector<double> out;
    for (std::uint32_t pos = layer.length - layer.queries; pos < layer.length; ++pos) {
      for (std::uint32_t head = 0; head < layer.heads(); ++head) {
        const std::uint32_t first = layer.window == 0 || pos + 1 <= layer.window ? 0 : pos + 1 - layer.window;
        const auto row = [&](const std::vector<float>& kv, std::uint32_t at) {
          return kv.data() + (std::size_t{at} * layer.kv_heads + head / layer.group) * layer.head_dim;
        };
        const float* q = data.q.data() + (std::size_t{pos} * layer.heads() + head) * layer.head_dim;
        double total = layer.sinks ? std::exp(data.sinks[head]) : 0;
        std::vector<double> o(layer.head_dim);
        for (std::uint32_t at = first; at <= pos; ++at) {
          double score = 0;
          for (std::uint32_t d = 0; d < layer.head_dim; ++d) score += static_cast<double>(q[d]) * row(data.k, at)[d];
          score *= data.spec.scale;
          if (layer.soft_cap != 0) score = layer.soft_cap * std::tanh(score / layer.soft_cap);
          const double weight = std::exp(score);
          total += weight;
          for (std::uint32_t d = 0; d < layer.head_dim; ++d) o[d] += weight * row(data.v, at)[d];
        }
        for (const double x : o) out.push_back(x / total);
      }
    }
    return out;
  }

  /// Every table and every cut give the bits of `ref` in one go.
  void expect_one_answer(const Layer& layer) {
    const Data data(layer, random_);
    const auto want = run(*tables_under_test()[0], layer, data, {});
    const std::uint32_t some_tile = 1 + random_.below(kAttnTileTokens), some_chunk = 1 + random_.below(layer.queries);
    const Cut cuts[] = {{},
                        {.chunk = 1},
                        {.chunk = some_chunk, .tile = some_tile},
                        {.block_tokens = 32},
                        {.block_tokens = 64, .tile = 5},
                        {.block_tokens = 256, .chunk = 7},
                        {.partial = true},
                        {.tile = 1, .partial = true},
                        {.tile = some_tile, .partial = true}};
    for (const Kernels* kernels : tables_under_test()) {
      for (const Cut& cut : cuts) {
        const bool more_of_the_same = cut.block_tokens == 32 || (cut.partial && cut.tile == 1);
        if (std::string(kernels->name) == "ref" && more_of_the_same) continue;
        EXPECT_TRUE(same_bits(want, run(*kernels, layer, data, cut)))
            << kernels->name << ": type " << static_cast<int>(layer.type) << ", head_dim " << layer.head_dim
            << ", group " << layer.group << ", window " << layer.window << ", length " << layer.length << "; blocks of "
            << cut.block_tokens << ", chunks of " << cut.chunk << ", tiles of " << cut.tile
            << (cut.partial ? ", partial" : "");
      }
    }
  }

  Random random_;
  testing::ScopedTrace trace_{__FILE__, __LINE__, random_.trace()};
};

constexpr KvType kTypes[] = {KvType::kBF16, KvType::kF16, KvType::kF32};

TEST_F(Attention, HeadSizesAndGroups) {
  for (const KvType type : kTypes) {
    for (const std::uint32_t head_dim : {8U, 16U, 40U, 64U, 80U, 96U, 128U, 256U}) {
      const std::uint32_t group = std::array{1U, 3U, 4U, 8U}[random_.below(4)];
      expect_one_answer({.type = type, .head_dim = head_dim, .group = group, .length = 20 + random_.below(40)});
    }
    for (const std::uint32_t group : {1U, 2U, 3U, 4U, 8U, 13U}) {
      expect_one_answer({.type = type, .head_dim = 64, .kv_heads = 1, .group = group, .length = 30, .queries = 18});
    }
  }
}

TEST_F(Attention, LengthsAcrossSplits) {
  for (const std::uint32_t length : {1U, 15U, 16U, 17U, 255U, 256U, 257U, 272U, 511U, 513U, 600U}) {
    const KvType type = kTypes[random_.below(3)];
    expect_one_answer({.type = type, .group = 3, .length = length, .queries = std::min(length, 19U)});
    expect_one_answer({.group = 4, .length = length, .queries = std::min(length, 19U)});
  }
}

TEST_F(Attention, WindowsSoftCapsAndSinks) {
  for (const KvType type : kTypes) {
    for (const std::uint32_t window : {1U, 5U, 16U, 100U, 256U, 300U, 512U}) {
      const std::uint32_t length = std::array{40U, 260U, 520U, 530U}[random_.below(4)];
      expect_one_answer({.type = type,
                         .head_dim = 32,
                         .group = 2,
                         .window = window,
                         .soft_cap = random_.below(2) == 0 ? 0.0F : 5.0F,
                         .sinks = random_.below(2) == 0,
                         .length = length,
                         .queries = 25});
    }
  }
}

TEST_F(Attention, LargeScoresAndFlushedValuesKeepTheirBits) {
  const Layer layer{.length = 290, .queries = 5};
  Data data(layer, random_);
  for (float& x : data.v) x *= random_.below(3) == 0 ? 1e-38F : 1.0F;  // products fall below the normal range
  for (std::size_t i = 0; i < data.k.size(); ++i) data.k[i] *= i % 5 == 0 ? 40.0F : 1.0F;
  const auto want = run(*tables_under_test()[0], layer, data, {});
  for (const Kernels* kernels : tables_under_test()) {
    EXPECT_TRUE(same_bits(want, run(*kernels, layer, data, {.block_tokens = 32}))) << kernels->name;
    EXPECT_TRUE(same_bits(want, run(*kernels, layer, data, {.partial = true}))) << kernels->name;
  }
}

TEST_F(Attention, RefIsSoftmaxAttention) {
  for (const KvType type : kTypes) {
    for (const bool all : {false, true}) {
      const Layer layer{.type = type,
                        .window = all ? 270U : 0U,
                        .soft_cap = all ? 4.0F : 0.0F,
                        .sinks = all,
                        .length = 400,
                        .queries = 10};
      const Data data(layer, random_);
      const auto got = run(*tables_under_test()[0], layer, data, {});
      const auto want = naive(layer, data);
      ASSERT_EQ(got.size(), want.size());
      const double bound = type == KvType::kF32 ? 2e-6 : type == KvType::kF16 ? 6e-4 : 5e-3;
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], bound) << static_cast<int>(type);
    }
  }
}

TEST_F(Attention, StoreRoundsAsTheContractSays) {
  const FloatMode mode;
  const float numbers[] = {1.0F, 1.00390625F, 1.01171875F, -1e-40F, 1e-40F, 3.4e38F, -70000.0F, 6e-8F};
  for (const KvType type : kTypes) {
    const Layer layer{.type = type, .head_dim = 8, .kv_heads = 1, .group = 1, .length = 1, .queries = 1};
    std::vector<std::byte> want;
    for (const Kernels* kernels : tables_under_test()) {
      Random fixed(7);
      const Store store(layer, 16, fixed);
      const KvRow row = store.row(0, 1, 0);
      kernels->store_kv(store.kv(), row, 0, numbers, numbers);
      const std::byte* block = store.kv().base + row.blocks[0].value * store.kv().layer_stride_bytes;
      std::vector<std::byte> got(block, block + store.kv().layer_stride_bytes);
      if (want.empty()) want = got;
      EXPECT_EQ(want, got) << kernels->name;
      if (type == KvType::kBF16) {
        const auto value = [&](std::uint32_t d) {
          std::uint16_t bits;
          std::memcpy(&bits, got.data() + store.kv().v_offset + d * 4, 2);
          return bits;
        };
        EXPECT_EQ(value(0), 0x3F80);
        EXPECT_EQ(value(1), 0x3F80);  // halfway: to even
        EXPECT_EQ(value(2), 0x3F82);
        EXPECT_EQ(value(3), 0x8000);  // denormal: signed zero
        EXPECT_EQ(value(5), 0x7F80);  // past the largest bf16
      }
    }
  }
}

}  // namespace
}  // namespace octavo
