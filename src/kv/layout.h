// The one source of KV bytes. Allocator, planner, metrics and docs ask here and nowhere else.
//
// A block holds `block_tokens` positions. For one layer and one KV head it is, 64-byte aligned and contiguous:
//   K cells | V cells          one cell = 16 tokens, block_tokens / 16 of each
// Heads follow each other, then blocks: one block of one layer is `layer_bytes` long.
//
// Groups: layers of one attention kind share block tables. All groups draw from one pool of equal pages, so kinds are
// cut into groups of equal bytes; what does not divide is padding, and is counted. A page is the block of one group,
// all its layers. Pages are stored in slices: slice s of every page lies in one array, so that a step streams one layer
// at a time. When all layers are of equal bytes a slice is a layer, "arena" and slice are the same.
//
// Pure arithmetic: no state, any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "octavo/model_info.h"

namespace octavo {

inline constexpr std::uint32_t kLayoutCellTokens = 16;

constexpr std::uint32_t kv_element_bytes(KvType type) { return type == KvType::kF32 ? 4 : 2; }

/// What a layer keeps per token. Grouped-query attention stores KV heads, never query heads.
struct KvLayerShape {
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t window = 0;  // 0: full attention; else a query at p reads keys in (p - window, p]
  bool latent = false;       // one vector of head_dim a token, read as keys and as values (multi-head latent attention)
  friend constexpr bool operator==(const KvLayerShape&, const KvLayerShape&) = default;
};

/// One block of one layer, in bytes. Offsets are inside one (block, KV head).
struct KvLayout {
  std::uint32_t block_tokens = 0;
  std::uint64_t k_cell_bytes = 0, v_cell_bytes = 0;  // padded to 64
  std::uint64_t v_offset = 0;
  std::uint64_t head_bytes = 0;               // one KV head
  std::uint64_t layer_bytes = 0;              // all KV heads: what the layer charges for a block
  std::uint64_t payload_bytes_per_token = 0;  // without padding: what a token is worth
};

constexpr KvLayout make_kv_layout(const KvLayerShape& shape, KvType type, std::uint32_t block_tokens) {
  const std::uint64_t head_token_bytes = std::uint64_t{shape.head_dim} * kv_element_bytes(type);
  const std::uint64_t cell = (head_token_bytes * kLayoutCellTokens + 63) / 64 * 64;
  const std::uint64_t cells = block_tokens / kLayoutCellTokens;
  KvLayout out;
  out.block_tokens = block_tokens;
  out.k_cell_bytes = cell;
  out.v_cell_bytes = shape.latent ? 0 : cell;
  out.v_offset = cells * cell;
  out.head_bytes = cells * (out.k_cell_bytes + out.v_cell_bytes);
  out.layer_bytes = out.head_bytes * shape.num_kv_heads;
  out.payload_bytes_per_token = (shape.latent ? 1 : 2) * head_token_bytes * shape.num_kv_heads;
  return out;
}

/// Where a layer's KV lies: at `offset` of slice `slice` of the pages of `group`.
struct KvPlacement {
  GroupId group;
  std::uint32_t arena = 0;  // the layer's place within its group
  std::uint32_t slice = 0;
  std::uint64_t offset = 0;
  KvLayout layout;
};

struct KvGroup {
  std::uint32_t window = 0;  // 0: full attention
  std::uint32_t num_layers = 0;
};

/// How the layers of a model share one pool of equal pages.
struct KvGroups {
  KvType type = KvType::kBF16;
  std::uint32_t block_tokens = 0;
  std::vector<KvPlacement> layers;   // [layers]
  std::vector<KvGroup> groups;       // ordered by their first layer
  std::vector<KvLayerShape> shapes;  // [layers], as given
  std::uint64_t page_bytes = 0;      // one block of any group: what allocator and tiers charge
  std::uint32_t num_slices = 0;
  std::uint64_t padding_bytes = 0;            // of one page of every group: charged, never used
  std::uint64_t payload_bytes_per_token = 0;  // all layers, windows not taken into account

  [[nodiscard]] std::uint64_t slice_bytes() const { return page_bytes / num_slices; }
  /// A token within every window costs this much, padding included.
  [[nodiscard]] std::uint64_t charged_bytes_per_token() const { return page_bytes * groups.size() / block_tokens; }
};

/// Groups for these layers: as few as keep padding within a sixth of the payload. A uniform model has one group.
/// `block_tokens` is a multiple of 16; every layer has at least one KV head and dimension.
[[nodiscard]] KvGroups plan_groups(std::span<const KvLayerShape> layers, KvType type, std::uint32_t block_tokens);

/// The most pages of one group that one sequence of `tokens` holds at a time, if no step computes more than
/// `max_step_tokens` of it. Pages behind a window are given back after each step.
constexpr std::uint64_t pages_held(std::uint32_t window, std::uint64_t tokens, std::uint32_t block_tokens,
                                   std::uint32_t max_step_tokens) {
  const std::uint64_t all = (tokens + block_tokens - 1) / block_tokens;
  if (window == 0) return all;
  // Live positions are the window - 1 before the step and those of the step; they may start anywhere in a page.
  const std::uint64_t live = std::uint64_t{window} - 1 + max_step_tokens;
  const std::uint64_t most = (live + block_tokens - 2) / block_tokens + 1;
  return all < most ? all : most;
}

/// The same over all groups: blocks of the pool.
[[nodiscard]] std::uint64_t blocks_held(const KvGroups& groups, std::uint64_t tokens, std::uint32_t max_step_tokens);

// Worked examples, checked by the compiler.
constexpr std::uint64_t kv_bytes_example(const KvLayerShape& shape, std::uint64_t layers, KvType type,
                                         std::uint64_t sequences, std::uint64_t tokens) {
  return make_kv_layout(shape, type, 16).layer_bytes * (tokens / 16) * layers * sequences;
}
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
// Llama-2-7B, multi-head: 32 layers of 32 heads of 128, 4,096 tokens at f16.
static_assert(kv_bytes_example({32, 128, 0}, 32, KvType::kF16, 1, 4096) == 2 * kGiB);
// Llama-2-70B, grouped: 80 layers of 8 KV heads (64 query heads count nothing), 32 sequences of 8,192 tokens.
static_assert(kv_bytes_example({8, 128, 0}, 80, KvType::kF16, 32, 8192) == 80 * kGiB);
static_assert(make_kv_layout({8, 128, 0}, KvType::kBF16, 16).payload_bytes_per_token * 32 == 128 * 1024);
// DeepSeek-V3, latent: 61 layers of 512 + 64 elements, whatever the 128 heads.
static_assert(make_kv_layout({1, 576, 0, true}, KvType::kBF16, 16).payload_bytes_per_token * 61 == 70'272);
static_assert(make_kv_layout({3, 64, 0}, KvType::kF32, 32).layer_bytes == 3 * 2 * 64 * 4 * 32);

}  // namespace octavo
