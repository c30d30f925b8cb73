// What a scheduler is told once.
#pragma once
#include <cstdint>
#include <string>

#include "octavo/config.h"

namespace octavo {

struct SchedulerConfig {
  std::uint32_t max_num_seqs = 64;
  std::uint32_t max_num_batched_tokens = 512;      // the budget of a step, >= max_num_seqs
  std::uint32_t long_prefill_token_threshold = 0;  // most tokens of one sequence in one step; 0: no limit
  std::uint32_t max_model_len = 4096;
  std::uint32_t max_queued = 4096;
  std::uint32_t watermark_blocks = 0;  // kept free by admissions while something runs
  Batching batching = Batching::kContinuous;
  PreemptionMode preemption = PreemptionMode::kRecompute;
  // What kAuto weighs: a victim is swapped if moving its blocks out and in again costs less than computing its tokens.
  std::uint64_t recompute_ns_per_token = 0;
  std::uint64_t swap_ns_per_block = 0;   // one way
  bool discard_kv_after_sample = false;  // the naive mode: each sampled token forgets the KV, all is computed again
  std::string model_fingerprint;         // roots the names of cached blocks
};

}  // namespace octavo
