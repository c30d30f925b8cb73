// What the KV bookkeeping wastes and what it costs: the scheduler and KV manager that serve, run without a model.
//
// Waste: requests with lengths drawn from a trace's quantiles go through each memory strategy, all waiting from the
// start, so that the pool is what limits. Figures are means over the steps from the first finished request until
// nobody waits any more. Equal configurations give equal figures on every machine.
// Cost: wall time of planning, committing and applying one step while all sequences decode.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "octavo/config.h"
#include "octavo/model_info.h"
#include "octavo/result.h"

namespace octavo {

struct KvBenchConfig {
  std::vector<LayerInfo> layers;  // empty: the shape of Llama-3-8B, 32 layers of 8 KV heads of 128
  KvType kv_type = KvType::kBF16;
  std::optional<std::uint64_t> kv_bytes;  // the pool; default: 131,072 tokens' worth (16 GiB for the default shape)
  std::uint32_t max_num_seqs = 256;
  std::uint32_t max_num_batched_tokens = 2048;
  std::uint32_t requests = 2000;  // of the waste runs; 0: none
  std::uint64_t seed = 1;
  std::vector<std::uint32_t> running = {32, 256};  // sequences of the cost runs; empty: none
};

/// One strategy. Bytes are means over the measured steps.
struct KvWasteRow {
  KvMemory memory = KvMemory::kPaged;
  std::uint32_t block_tokens = 0;
  std::uint64_t pool_bytes = 0;
  double reserved_bytes = 0;  // of blocks with an owner
  double used_bytes = 0;      // of those, hold a token
  double external_bytes = 0;  // of free blocks, in runs too short for what the strategy takes at once
  double running = 0;
  std::uint64_t steps = 0;     // measured ones
  std::uint64_t requests = 0;  // that finished, of the whole run
  std::uint64_t moves = 0;
  std::uint64_t preemptions = 0;

  /// Reserved, but holding no token; of what is reserved.
  [[nodiscard]] double internal_waste() const {
    return reserved_bytes > 0 ? (reserved_bytes - used_bytes) / reserved_bytes : 0;
  }
  /// Free while others wait, for whatever reason; of the pool.
  [[nodiscard]] double free_share() const {
    return pool_bytes > 0 ? 1 - reserved_bytes / static_cast<double>(pool_bytes) : 0;
  }
  /// Of that, in runs too short for what the strategy takes at once; of the pool.
  [[nodiscard]] double external_waste() const {
    return pool_bytes > 0 ? external_bytes / static_cast<double>(pool_bytes) : 0;
  }
};

/// Microseconds of one step: schedule, commit and apply, of `running` sequences of about 1,000 tokens in blocks of 16.
struct KvCostRow {
  std::uint32_t running = 0;
  bool prefix_caching = false;
  double min_us = 0, median_us = 0;  // over bursts of 16 steps: in a burst every sequence fills one block
};

struct KvBenchReport {
  std::uint64_t kv_bytes_per_token = 0;  // charged, at blocks of 16 tokens
  std::uint32_t max_model_len = 0;       // the longest request that the trace can give
  double mean_prompt_tokens = 0, mean_output_tokens = 0;
  std::vector<KvWasteRow> waste;
  std::vector<KvCostRow> cost;
};

/// Some ten seconds. Refused by kInvalidArgument if the pool cannot hold the longest request.
[[nodiscard]] Result<KvBenchReport> bench_kv(const KvBenchConfig& config);

}  // namespace octavo
