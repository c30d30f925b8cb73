// What fits: the memory that a model takes under a configuration, before anything is loaded.
//
// The figures come from the code that serves: kv/layout says what a token costs, the engine takes its pool and buffers
// by the same plan. docs/capacity.md derives each of them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octavo/config.h"
#include "octavo/model_shape.h"
#include "octavo/result.h"

namespace octavo {

struct MemoryQuestion {
  EngineConfig engine{};                  // KV type, blocks, budgets, strategy; its `model` is not read
  std::optional<std::uint64_t> memory{};  // for everything; none: what this machine (and its cgroup) has available
  std::uint32_t threads = 0;              // 0: the cores this process may use
  std::optional<std::uint32_t> batch{}, length{};  // one point: so many sequences of so many tokens
};

/// Layers of one kind, and what a token costs in them.
struct KvLayersPlan {
  std::string kind;  // "full", "window 512", "latent"
  std::uint32_t layers = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0, window = 0, latent_dim = 0;
  std::uint64_t bytes_per_token = 0;  // payload, all these layers, within the window
};

/// One purpose that memory goes to.
struct MemoryTag {
  std::string tag;  // "weights", "activations", "kv pool", "swap", "kv bookkeeping", "tokenizer", "requests", ...
  std::uint64_t bytes = 0;
  std::string why;           // one line: where the figure comes from
  bool when_needed = false;  // taken bit by bit as it is used, up to `bytes`
  bool in_rss = true;        // false: the kernel keeps it for the process (page tables)
};

struct MemoryPlan {
  std::vector<KvLayersPlan> kv_layers;
  std::uint64_t bytes_per_token = 0;                               // payload, all layers
  std::uint64_t charged_bytes_per_token = 0;                       // with padding, as the pool charges it
  std::uint32_t block_tokens = 0, num_groups = 0, num_blocks = 0;  // blocks without the null block
  std::uint64_t page_bytes = 0;
  std::uint64_t weights_bytes = 0;      // resident
  std::uint64_t activations_bytes = 0;  // step buffers at the token budget
  std::uint64_t pool_bytes = 0;         // KV
  std::vector<MemoryTag> tags;          // everything, the pool included
  std::uint64_t memory_bytes = 0;       // the limit
  std::uint64_t total_bytes = 0;        // sum of the tags
  std::uint64_t rss_bytes = 0;          // of those, what the process shows as resident with a full pool and no swap
  // As memory allows, whatever the number of sequences; the pool above is no larger than these can use.
  std::uint64_t blocks_that_fit = 0, tokens_that_fit = 0;
  std::uint32_t longest_request = 0;
  std::string longest_request_reason;  // why it is below the model's context; empty: it is not
  std::uint32_t num_host_blocks = 0;   // that swap holds at most

  // At the asked point, or one sequence of the longest request.
  std::uint32_t batch = 0, length = 0;
  std::uint64_t kv_bytes = 0;          // payload of batch x length: exact, windows applied
  std::uint64_t kv_charged_bytes = 0;  // in whole blocks, padding included
  std::uint64_t max_batch = 0;         // sequences of `length` that fit at once
  bool fits = false;                   // weights, buffers and batch x length within memory
  std::string why_not;                 // where it does not: the numbers
  std::string nearest;                 // and what would: "batch 3, or length 1,024, or 30.5 GiB of memory"
  std::vector<std::string> notes;      // what the figures leave out, or take for granted
};

/// Refused by kInvalidArgument: zero, absurd and contradictory numbers, with the flag, the value and the limit. What
/// does not fit is no error.
[[nodiscard]] Result<MemoryPlan> plan_memory(const ModelShape& model, const MemoryQuestion& question);

/// The derivation with the numbers filled in, for people.
[[nodiscard]] std::string explain(const ModelShape& model, const MemoryQuestion& question, const MemoryPlan& plan);

}  // namespace octavo
