// How much KV cache an engine gets and the longest request it can promise: decided at load, told in the banner.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "kv/layout.h"
#include "octavo/config.h"
#include "octavo/result.h"

namespace octavo {

/// The most tokens that any step may take: what step buffers and windows are sized for.
[[nodiscard]] inline std::uint32_t budget_cap(const EngineConfig& config) {
  return config.max_num_batched_tokens.value_or(std::max(512U, config.max_num_seqs));
}

struct KvBudget {
  std::uint32_t num_blocks = 0;  // the null block included
  std::uint32_t max_model_len = 0;
  std::string max_model_len_reason;  // why it is below the model's context; empty if it is not
};

/// The pool: config.kv_bytes, or config.kv_fraction of `free_bytes` (what weights and activations leave), but never
/// more than max_num_seqs of the longest requests need. The longest request is the model's context or
/// config.max_model_len; where the pool cannot hold that, an explicit wish is refused with the numbers and a default is
/// lowered.
[[nodiscard]] Result<KvBudget> plan_kv(const EngineConfig& config, const KvGroups& groups, std::uint32_t context_length,
                                       std::uint64_t free_bytes);

/// Slots for swapped blocks: config.swap_bytes, at most half of the `left` bytes and four times the pool.
[[nodiscard]] std::uint32_t host_slots(const EngineConfig& config, const KvGroups& groups, std::uint32_t num_blocks,
                                       std::uint64_t left);

}  // namespace octavo
