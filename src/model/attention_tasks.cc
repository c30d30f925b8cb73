#include "model/attention_tasks.h"

#include <algorithm>

namespace octavo {
namespace {

/// First key position that a query at `pos` sees.
std::uint32_t first_visible(std::uint32_t pos, std::uint32_t window) {
  return window == 0 || pos < window ? 0 : pos + 1 - window;
}

}  // namespace

void list_attention_tasks(std::span<const KvRow> rows, std::uint32_t num_kv_heads, std::uint32_t heads_per_kv_head,
                          std::uint32_t window, std::uint32_t threads, std::uint32_t max_states, AttentionTasks& out) {
  out.tasks.clear();
  out.merges.clear();
  out.num_states = 0;

  std::uint32_t direct_tasks = 0;
  for (const KvRow& row : rows) {
    direct_tasks += (row.num_tokens + kAttnTileTokens - 1) / kAttnTileTokens * num_kv_heads;
  }
  const bool few = direct_tasks < 2 * threads && threads > 1;

  for (std::uint32_t r = 0; r < rows.size(); ++r) {
    const KvRow& row = rows[r];
    for (std::uint32_t begin = 0; begin < row.num_tokens; begin += kAttnTileTokens) {
      const std::uint32_t end = std::min(begin + kAttnTileTokens, row.num_tokens);
      const std::uint32_t split_begin = first_visible(row.first_pos + begin, window) / kSplitTokens;
      const std::uint32_t split_end = (row.first_pos + end - 1) / kSplitTokens + 1;
      const std::uint32_t splits = split_end - split_begin;
      const std::uint32_t states = splits * heads_per_kv_head;
      const bool partial =
          few && row.num_tokens == 1 && splits > 1 && out.num_states + states * num_kv_heads <= max_states;
      for (std::uint32_t head = 0; head < num_kv_heads; ++head) {
        if (!partial) {
          out.tasks.push_back({r, head, begin, end, split_begin, split_end, AttnTask::kDirect});
          continue;
        }
        out.merges.push_back({row.act_row, head, out.num_states, splits});
        for (std::uint32_t split = split_begin; split < split_end; ++split) {
          out.tasks.push_back({r, head, begin, end, split, split + 1, out.num_states});
          out.num_states += heads_per_kv_head;
        }
      }
    }
  }
}

}  // namespace octavo
