// Attention work of one step for one group of layers: listed once, reused by every layer of the group.
//
// A direct task takes up to 16 tokens of a row and one KV head through all their splits. One that is a large part of
// the step's work would keep a thread busy while others wait: its splits become tasks of their own, merged in split
// order afterwards. The numerics contract makes both ways equal on bits, so the choice may depend on the thread count.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace octavo {

struct AttentionTasks {
  std::vector<AttnTask> tasks;
  std::vector<MergeTask> merges;
  std::uint32_t num_states = 0;  // softmax states that the partial tasks write
};

/// Lists the work of `rows`. `max_states` bounds the partial tasks' scratch: what is beyond it goes direct.
void list_attention_tasks(std::span<const KvRow> rows, std::uint32_t num_kv_heads, std::uint32_t heads_per_kv_head,
                          std::uint32_t window, std::uint32_t threads, std::uint32_t max_states, AttentionTasks& out);

}  // namespace octavo
