// One layer's KV arena as the attention kernels see it: addresses and strides, no ownership.
//
// Block b of KV head h starts at base + b * layer_stride_bytes + h * head_stride_bytes. A block is a stack of cells of
// 16 tokens, so block size never changes bits. Cell c of a block:
//   K at        c * k_cell_bytes   token-lane:      bf16 [D/2][16][2], f16 and f32 [D][16]
//   V at v_offset + c * v_cell_bytes   bf16 pair-interleaved [8][D][2] (token pairs), f16 and f32 [16][D]
// Filled from kv/layout by the store.
#pragma once
#include <cstddef>
#include <cstdint>

#include "octavo/model_info.h"

namespace octavo {

inline constexpr std::uint32_t kCellTokens = 16;

struct PagedKv {
  std::byte* base = nullptr;
  std::uint64_t layer_stride_bytes = 0, head_stride_bytes = 0;
  std::uint64_t k_cell_bytes = 0, v_cell_bytes = 0, v_offset = 0;
  std::uint32_t block_tokens = 0, num_kv_heads = 0, head_dim = 0;
  KvType type = KvType::kBF16;
};

}  // namespace octavo
