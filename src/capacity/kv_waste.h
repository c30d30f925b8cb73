// How much of the reserved KV holds no token, by memory strategy: see octavo/kv_bench.h.
#pragma once
#include <cstdint>
#include <span>

#include "kv/kv_types.h"
#include "octavo/kv_bench.h"
#include "octavo/workload.h"
#include "sched/scheduler_config.h"

namespace octavo {

/// Means over steps, from token places of the pool to bytes.
class WasteMeter {
 public:
  /// Blocks of one group are pages of `page_bytes` for `block_tokens` tokens.
  WasteMeter(std::uint64_t page_bytes, std::uint32_t block_tokens)
      : bytes_per_place_(static_cast<double>(page_bytes) / block_tokens) {}

  void add(const KvUsage& usage, std::uint32_t running);
  /// Fills the means of `row`, and `steps`.
  void report(KvWasteRow& row) const;

 private:
  double bytes_per_place_;
  std::uint64_t steps_ = 0, reserved_ = 0, used_ = 0, external_ = 0, running_ = 0;
};

struct WasteRun {
  SchedulerConfig scheduler;
  KvConfig kv;
  std::uint64_t page_bytes = 0;
};

/// Serves all requests and says what was wasted meanwhile.
[[nodiscard]] KvWasteRow measure_waste(const WasteRun& run, std::span<const PlannedRequest> requests);

}  // namespace octavo
