#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/memory.h"
#include "kv/layout.h"
#include "model/attention_tasks.h"
#include "probe/kernel_parts.h"

namespace octavo {
namespace {

constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint64_t kDecodeBytes = 64ULL << 20U;  // of KV that a decode pass reads

struct Shape {
  KvType type;
  std::uint32_t kv_heads, head_dim, group, depth;

  [[nodiscard]] std::uint32_t heads() const { return kv_heads * group; }
  [[nodiscard]] KvLayout layout() const { return make_kv_layout({kv_heads, head_dim, 0}, type, kBlockTokens); }
  [[nodiscard]] std::uint32_t blocks() const {  // of one sequence, with room for a tile of queries
    return (depth + kAttnTileTokens + kBlockTokens - 1) / kBlockTokens;
  }
  [[nodiscard]] std::uint32_t sequences() const {
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, kDecodeBytes / (layout().layer_bytes * blocks())));
  }
  [[nodiscard]] std::uint64_t bytes() const { return layout().layer_bytes * blocks() * sequences(); }
};

/// Sequences of one shape in memory that all shapes share, blocks in random order.
class Sequences {
 public:
  Sequences(const Shape& shape, const AlignedBuffer& memory, const Kernels& kernels) : shape_(shape) {
    const KvLayout layout = shape.layout();
    kv_.base = memory.data();
    kv_.layer_stride_bytes = layout.layer_bytes;
    kv_.head_stride_bytes = layout.head_bytes;
    kv_.k_cell_bytes = layout.k_cell_bytes;
    kv_.v_cell_bytes = layout.v_cell_bytes;
    kv_.v_offset = layout.v_offset;
    kv_.block_tokens = kBlockTokens;
    kv_.num_kv_heads = shape.kv_heads;
    kv_.head_dim = shape.head_dim;
    kv_.type = shape.type;

    const std::uint32_t count = shape.blocks() * shape.sequences();
    blocks_.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) blocks_[i] = BlockId{i};
    std::uint64_t random = 7;
    for (std::uint32_t i = count; i-- > 1;) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      std::swap(blocks_[i], blocks_[(random >> 33U) % (i + 1)]);
    }
    // Real numbers in one block, the same ones in all others.
    std::vector<float> token(std::size_t{shape.kv_heads} * shape.head_dim * kBlockTokens);
    for (std::size_t i = 0; i < token.size(); ++i) token[i] = static_cast<float>(i * 37 % 101) * 0.02F - 1.0F;
    const BlockId first{0};
    const KvRow row{&first, 0, 1, 0, kBlockTokens, 0};
    for (std::uint32_t t = 0; t < kBlockTokens; ++t) kernels.store_kv(kv_, row, t, token.data(), token.data());
    for (std::uint32_t i = 1; i < count; ++i) {
      std::memcpy(kv_.base + i * layout.layer_bytes, kv_.base, layout.layer_bytes);
    }
  }

  [[nodiscard]] const PagedKv& kv() const { return kv_; }
  [[nodiscard]] KvRow row(std::uint32_t sequence, std::uint32_t queries) const {
    return {blocks_.data() + std::size_t{sequence} * shape_.blocks(),
            0,
            shape_.blocks(),
            shape_.depth,
            queries,
            sequence * queries};
  }

 private:
  Shape shape_;
  PagedKv kv_;
  std::vector<BlockId> blocks_;
};

}  // namespace

Result<std::vector<AttentionRow>> KernelBench::attention() {
  std::vector<Shape> shapes;
  for (const KvType type : config_.kv_types) {
    for (const std::uint32_t dim : config_.head_dims) {
      for (const std::uint32_t group : config_.groups) {
        for (const std::uint32_t depth : config_.depths) shapes.push_back({type, config_.kv_heads, dim, group, depth});
      }
    }
  }
  std::vector<AttentionRow> out;
  std::uint64_t most_bytes = 0;
  for (const Shape& shape : shapes) most_bytes = std::max(most_bytes, shape.bytes());
  if (shapes.empty()) return out;
  OCTAVO_TRY(const AlignedBuffer memory, written_buffer(most_bytes));

  for (const Shape& shape : shapes) {
    const Sequences sequences(shape, memory, kernels_);
    const AttnSpec spec{shape.heads(), 0, 1.0F / std::sqrt(static_cast<float>(shape.head_dim)), 0, nullptr};
    const std::size_t scratch_bytes = (attend_scratch_bytes(shape.group, shape.head_dim) + 63) / 64 * 64;
    const AlignedBuffer scratch(scratch_bytes * pool_.size());
    for (const std::uint32_t queries : {1U, kAttnTileTokens}) {
      tell(fmt::format("attention {}, D {}, G {}, depth {}, {} queries", kv_type_name(shape.type), shape.head_dim,
                       shape.group, shape.depth, queries));
      const std::uint32_t count = queries == 1 ? shape.sequences() : 1;
      std::vector<KvRow> rows;
      for (std::uint32_t s = 0; s < count; ++s) rows.push_back(sequences.row(s, queries));
      const std::uint64_t width = std::uint64_t{shape.heads()} * shape.head_dim;
      AlignedBuffer q(width * count * queries * sizeof(float)), result(q.size());
      for (std::uint64_t i = 0; i < q.size() / sizeof(float); ++i) {
        q.as<float>()[i] = static_cast<float>(i * 29 % 103) * 0.02F - 1.0F;
      }
      const std::uint32_t splits = (shape.depth + queries - 1) / kSplitTokens + 1;
      const std::uint32_t max_states = splits * shape.heads() * count;
      AttentionTasks work;
      list_attention_tasks(rows, shape.kv_heads, shape.group, 0, pool_.size(), max_states, work);
      const AlignedBuffer states(std::uint64_t{max_states} * attn_state_floats(shape.head_dim) * sizeof(float));
      const auto attend = [&] {
        pool_.run(static_cast<std::uint32_t>(work.tasks.size()), [&](std::uint32_t tile, std::uint32_t worker) {
          const AttnTask& task = work.tasks[tile];
          kernels_.attend(sequences.kv(), spec, rows[task.row], task, q.as<float>(), result.as<float>(),
                          states.as<float>(), scratch.data() + worker * scratch_bytes);
        });
        pool_.run(static_cast<std::uint32_t>(work.merges.size()), [&](std::uint32_t tile, std::uint32_t) {
          kernels_.merge(spec, shape.kv_heads, shape.head_dim, work.merges[tile], states.as<float>(),
                         result.as<float>());
        });
      };
      double keys = 0;  // that the queries of a sequence see
      for (std::uint32_t i = 0; i < queries; ++i) keys += shape.depth + i + 1;
      const double ops = 4.0 * keys * static_cast<double>(width) * count;
      const std::uint64_t token_bytes = shape.layout().payload_bytes_per_token;
      const double bytes = static_cast<double>(token_bytes) * (shape.depth + queries) * count;
      const PeakRate& peak = shape.type == KvType::kBF16 ? peaks_.bf16 : peaks_.f32;
      OCTAVO_TRY(const KernelSpeed measured, speed(peak, ops, bytes, attend));
      out.push_back({shape.type, shape.head_dim, shape.group, shape.depth, queries, count, shape.kv_heads, token_bytes,
                     measured});
    }
  }
  return out;
}

}  // namespace octavo
