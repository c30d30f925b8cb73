// The engine: one model, one KV pool, one step loop on a thread of its own, many requests at once.
//
//   auto engine = Engine::load({.model = "model.gguf"});
//   auto all = (*engine)->generate({{.prompt = (*engine)->tokenizer()->encode("Hello", {})}});
//
// Threads: every member may be called from any thread.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "octavo/chat_template.h"
#include "octavo/config.h"
#include "octavo/model_info.h"
#include "octavo/planner.h"
#include "octavo/request.h"
#include "octavo/result.h"
#include "octavo/tokenizer.h"
#include "octavo/trace.h"

namespace octavo {

/// Long work tells how far it is: `done` of `total` bytes (0: unknown).
using Progress = std::function<void(const char* what, std::uint64_t done, std::uint64_t total)>;

/// Where the packed weights are, and how they got there.
struct WeightsReport {
  std::string pack;     // the pack cache's file that they come from; empty: packed into memory
  bool mapped = false;  // they are that file's own pages, shared with other processes; small ones are copied
  bool cached = false;  // it was there before this start
  std::string notice;   // why there is no such file, or why it had to be made anew; empty: nothing to tell
  std::chrono::milliseconds took{};
};

/// What the start-up banner says; decided once by load().
struct EngineReport {
  ModelInfo model;
  std::string fingerprint;                // model fingerprint + numerics options: OpenAI's system_fingerprint
  std::string isa;                        // "avx2"
  std::vector<std::string> isa_not_used;  // "avx512: this CPU has no AVX512F"
  std::uint32_t threads = 0;
  KvType kv_type = KvType::kBF16;
  WeightsReport weights;
  MemoryPlan memory;  // made before anything was loaded, and kept to
  std::uint64_t packed_weights_bytes = 0, activation_bytes = 0, kv_bytes = 0;
  std::uint64_t step_weights_bytes = 0;  // that a step with logits reads: all but an embedding table of its own
  std::uint64_t kv_bytes_per_token = 0;  // what the pool charges, padding included
  std::uint32_t block_tokens = 0, num_blocks = 0, num_groups = 0;
  KvMemory kv_memory = KvMemory::kPaged;
  bool prefix_caching = false;
  std::uint64_t swap_bytes = 0;  // host memory that preempted KV may take
  std::uint64_t tokens_that_fit = 0;
  std::uint32_t max_model_len = 0;   // longest request: prompt + output
  std::string max_model_len_reason;  // why it is lower than the model's context; empty if it is not
  std::uint32_t max_num_seqs = 0, max_num_batched_tokens = 0;
  std::string max_num_batched_tokens_reason;  // "measured: a full step takes 7.6 decode-only steps"
};

/// Bytes of one of the plan's tags, planned and as they are now.
struct MemoryUse {
  std::string tag;
  std::uint64_t planned = 0, actual = 0;
};

/// Cumulative counters and present gauges.
struct EngineStats {
  std::uint32_t running = 0, waiting = 0;
  std::uint32_t blocks_total = 0, blocks_used = 0;
  std::uint32_t blocks_cached = 0;  // free, but still found by a lookup
  std::uint32_t host_slots_total = 0, host_slots_used = 0;
  /// Of the KV pool: owned by sequences; of that, holding a live token; free, but in runs too short for kv_memory.
  std::uint64_t kv_reserved_bytes = 0, kv_used_bytes = 0, kv_external_waste_bytes = 0;
  std::uint64_t kv_copies = 0, kv_moves = 0;     // blocks copied: of shared ones on a write, and of runs that moved
  std::uint64_t steps = 0, computed_tokens = 0;  // every token that went through the weights
  std::uint64_t prompt_tokens = 0, generated_tokens = 0;
  std::uint64_t admitted = 0, resumed = 0;  // sequences that started to run; of those, had run before
  std::uint64_t preemptions = 0, preemptions_recompute = 0, preemptions_swap = 0;
  std::uint64_t prefix_queries = 0, prefix_hits = 0;  // prompt tokens of sequences that ran for the first time
  std::uint64_t forked_tokens = 0;                    // prompt tokens that choices share
  std::uint64_t recovered_tokens = 0;                 // of preempted sequences, cached or kept on the host
  std::uint64_t finished_stop = 0, finished_length = 0, finished_abort = 0, finished_deadline = 0, finished_error = 0;
  std::uint64_t trace_lost = 0;  // records that the trace file could not take
  /// Steps by tokens in the step: <= 1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, more.
  std::array<std::uint64_t, 12> step_tokens{};
};

class Engine {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Engine>> load(const EngineConfig& config, const Progress& progress = {});
  virtual ~Engine() = default;

  /// Refuses with numbers what can never be served (kContextLength, kInvalidArgument) or not now (kExhausted,
  /// kUnavailable while draining).
  [[nodiscard]] virtual Result<RequestId> submit(Request request, Sink sink) = 0;
  /// Ends a request at the next step; its blocks are freed and its sink gets kAbort. Unknown ids are ignored.
  virtual void abort(RequestId id) = 0;
  /// Runs all requests as one batch and waits. Completions by request, then by choice.
  [[nodiscard]] virtual Result<std::vector<std::vector<Completion>>> generate(std::vector<Request> requests) = 0;

  [[nodiscard]] virtual const EngineReport& report() const = 0;
  [[nodiscard]] virtual const Tokenizer* tokenizer() const = 0;         // nullptr: the folder has none
  [[nodiscard]] virtual const ChatTemplate* chat_template() const = 0;  // nullptr: the model has none
  [[nodiscard]] virtual EngineStats stats() const = 0;
  /// By the tags of report().memory, from the kernel's account of this process: takes milliseconds.
  [[nodiscard]] virtual std::vector<MemoryUse> memory() const = 0;
  /// The last `most` steps, oldest first; about a thousand are kept.
  [[nodiscard]] virtual std::vector<RecentStep> recent_steps(std::size_t most) const = 0;

  /// Why requests fail and none is taken any more (the weights turned out to be damaged); success: all is well.
  [[nodiscard]] virtual Result<> health() const = 0;

  /// Forgets all cached prefixes, between two steps. kBusy while any sequence holds KV blocks.
  [[nodiscard]] virtual Result<> reset_prefix_cache() = 0;

  /// Refuses new requests, waits for the running ones until `timeout`, then aborts the rest. True: all finished.
  virtual bool drain(std::chrono::milliseconds timeout) = 0;
};

}  // namespace octavo
