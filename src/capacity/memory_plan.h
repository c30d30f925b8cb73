// How much KV cache an engine gets and the longest request it can promise: one arithmetic for the engine, which asks at
// load, and for the planner, which asks before there is one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kv/layout.h"
#include "octavo/config.h"
#include "octavo/model_shape.h"
#include "octavo/result.h"

namespace octavo {

/// The most tokens that any step may take: what step buffers and windows are sized for.
[[nodiscard]] inline std::uint32_t budget_cap(const EngineConfig& config) {
  return config.max_num_batched_tokens.value_or(std::max(512U, config.max_num_seqs));
}

/// What each layer keeps.
[[nodiscard]] std::vector<KvLayerShape> kv_shapes(const ModelShape& model);

/// What a sequence of `tokens` holds at most, if none may be longer than `max_model_len`.
[[nodiscard]] std::uint64_t blocks_of(const EngineConfig& config, const KvGroups& groups, std::uint64_t tokens,
                                      std::uint64_t max_model_len);

/// The most tokens, up to `at_most`, that one sequence can hold in `blocks`.
[[nodiscard]] std::uint32_t longest_in(const EngineConfig& config, const KvGroups& groups, std::uint64_t blocks,
                                       std::uint32_t at_most);

struct KvBudget {
  std::uint32_t num_blocks = 0;  // the null block included
  std::uint32_t max_model_len = 0;
  std::string max_model_len_reason;  // why it is below the model's context; empty if it is not
};

/// What the pool may take beside the null block: config.kv_bytes, or config.kv_fraction of `free_bytes`.
[[nodiscard]] std::uint64_t kv_space(const EngineConfig& config, const KvGroups& groups, std::uint64_t free_bytes);

/// The pool: kv_space() of `free_bytes`, what all else leaves, but never more than max_num_seqs of the longest
/// requests need. The longest request is the model's context or
/// config.max_model_len; where the pool cannot hold that, an explicit wish is refused with the numbers and a default is
/// lowered.
[[nodiscard]] Result<KvBudget> plan_kv(const EngineConfig& config, const KvGroups& groups, std::uint32_t context_length,
                                       std::uint64_t free_bytes);

/// Slots for swapped blocks: config.swap_bytes, at most half of the `left` bytes and four times the pool.
[[nodiscard]] std::uint32_t host_slots(const EngineConfig& config, const KvGroups& groups, std::uint32_t num_blocks,
                                       std::uint64_t left);

}  // namespace octavo
