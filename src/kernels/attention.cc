#include "kernels/attention_tile.h"

namespace octavo {

std::size_t attend_scratch_bytes(std::uint32_t heads_per_kv_head, std::uint32_t head_dim) {
  const std::size_t rows = std::size_t{heads_per_kv_head} * kAttnTileTokens + kMostQueryTileRows;  // in whole tiles
  const std::size_t tile = kMostQueryTileRows * (kSplitTokens + attn_state_floats(head_dim));
  const std::size_t floats = rows * head_dim + 2 * rows + tile;
  return (floats * sizeof(float) + 63) / 64 * 64;
}

}  // namespace octavo
