#include "model/attention_tasks.h"

#include <algorithm>

namespace octavo {
namespace {

/// First key position that a query at `pos` sees.
std::uint32_t first_visible(std::uint32_t pos, std::uint32_t window) {
  return window == 0 || pos < window ? 0 : pos + 1 - window;
}

/// Up to 16 tokens of a row and the splits that they see.
struct Tile {
  std::uint32_t row, begin, end, split_begin, split_end;
  [[nodiscard]] std::uint32_t tokens() const { return end - begin; }
  [[nodiscard]] std::uint32_t splits() const { return split_end - split_begin; }
  [[nodiscard]] std::uint64_t work() const { return std::uint64_t{tokens()} * splits(); }
};

template <class Body>
void for_tiles(std::span<const KvRow> rows, std::uint32_t window, const Body& body) {
  for (std::uint32_t r = 0; r < rows.size(); ++r) {
    const KvRow& row = rows[r];
    for (std::uint32_t begin = 0; begin < row.num_tokens; begin += kAttnTileTokens) {
      const std::uint32_t end = std::min(begin + kAttnTileTokens, row.num_tokens);
      body(Tile{r, begin, end, first_visible(row.first_pos + begin, window) / kSplitTokens,
                (row.first_pos + end - 1) / kSplitTokens + 1});
    }
  }
}

}  // namespace

void list_attention_tasks(std::span<const KvRow> rows, std::uint32_t num_kv_heads, std::uint32_t heads_per_kv_head,
                          std::uint32_t window, std::uint32_t threads, std::uint32_t max_states, AttentionTasks& out) {
  out.tasks.clear();
  out.merges.clear();
  out.num_states = 0;

  std::uint64_t all_work = 0;
  for_tiles(rows, window, [&](const Tile& tile) { all_work += tile.work() * num_kv_heads; });
  // Half of what is one thread's share.
  const std::uint64_t large = threads > 1 ? all_work / (2 * threads) : all_work;

  for_tiles(rows, window, [&](const Tile& tile) {
    const std::uint32_t per_split = tile.tokens() * heads_per_kv_head, states = tile.splits() * per_split;
    const bool partial =
        tile.work() > large && tile.splits() > 1 && out.num_states + states * num_kv_heads <= max_states;
    for (std::uint32_t head = 0; head < num_kv_heads; ++head) {
      if (!partial) {
        out.tasks.push_back(
            {tile.row, head, tile.begin, tile.end, tile.split_begin, tile.split_end, AttnTask::kDirect});
        continue;
      }
      for (std::uint32_t token = 0; token < tile.tokens(); ++token) {
        out.merges.push_back({rows[tile.row].act_row + tile.begin + token, head, tile.splits(),
                              out.num_states + token * heads_per_kv_head, per_split});
      }
      for (std::uint32_t split = tile.split_begin; split < tile.split_end; ++split) {
        out.tasks.push_back({tile.row, head, tile.begin, tile.end, split, split + 1, out.num_states});
        out.num_states += per_split;
      }
    }
  });
}

}  // namespace octavo
