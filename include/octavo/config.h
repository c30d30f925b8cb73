// How an engine is set up: one plain struct, the same for the CLI, the server and bindings.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "octavo/model_info.h"

namespace octavo {

enum class Batching : std::uint8_t { kContinuous, kStatic };  // kStatic: the batch closes until its longest ends
enum class PolicyKind : std::uint8_t { kFcfs, kPriority, kShortestRemaining };

/// How a sequence gets its KV blocks: any (kPaged), a run of consecutive ones that grows by chunks and moves when it
/// must (kDynamic), or a run for max_model_len from the start (kStatic). Same bits; only what is reserved differs.
enum class KvMemory : std::uint8_t { kPaged, kDynamic, kStatic };

/// What becomes of the KV of a preempted sequence: computed again, kept in host memory, or what costs less.
enum class PreemptionMode : std::uint8_t { kAuto, kRecompute, kSwap };

struct EngineConfig {
  std::string model;               // GGUF file (first of a split) or Hugging Face folder
  std::string chat_template_file;  // overrides the model's own template
  KvType kv_type = KvType::kBF16;
  Numerics numerics = Numerics::kInt8;
  bool kv_cache = true;             // false: the naive mode, every token recomputes all before it
  std::uint32_t block_tokens = 16;  // 16, 32, 64, 128 or 256
  KvMemory kv_memory = KvMemory::kPaged;
  std::optional<std::uint64_t> kv_bytes;       // default: kv_fraction of what memory leaves, see docs/kv.md
  double kv_fraction = 0.5;                    // (0, 1]
  std::optional<bool> prefix_caching;          // default: on where memory is paged
  std::optional<std::uint32_t> max_model_len;  // default: the model's context, lowered to what the pool holds
  std::uint32_t max_num_seqs = 64;
  std::optional<std::uint32_t> max_num_batched_tokens;  // budget of a step, >= max_num_seqs; default: measured at load
  std::uint32_t long_prefill_token_threshold = 0;       // most prompt tokens of one sequence in one step; 0: no limit
  std::uint32_t max_queued = 4096;
  Batching batching = Batching::kContinuous;
  PolicyKind policy = PolicyKind::kFcfs;
  std::chrono::milliseconds aging{10'000};  // waiting that outweighs one step of priority; 0: strict priority
  PreemptionMode preemption = PreemptionMode::kAuto;
  std::uint64_t swap_bytes = std::uint64_t{1} << 30;     // host memory for preempted KV; taken when first needed
  double watermark = 0.01;                               // [0, 1): part of the pool that admissions leave free
  std::optional<std::chrono::milliseconds> target_tpot;  // steps of running streams take at most this long
  std::optional<std::chrono::milliseconds> target_ttft;  // prompts may take larger steps to be done by then
  bool pack_cache = true;  // keep packed weights on disk and map them at the next start; see docs/cli.md
  std::uint64_t cache_bytes = std::uint64_t{64} << 30;  // that the cache's folder may hold
  std::string trace_file;     // steps and KV events, written as they happen; see docs/trace.md
  std::uint32_t threads = 0;  // 0: the cores this process may use
  bool pin_threads = false;   // bind each compute thread to a core: worth it where nobody else uses them
  bool prefault_kv = false;   // make KV pool and step buffers resident in the background
};

}  // namespace octavo
