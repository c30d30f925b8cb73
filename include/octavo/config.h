// How an engine is set up: one plain struct, the same for the CLI, the server and bindings.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "octavo/model_info.h"

namespace octavo {

enum class Batching : std::uint8_t { kContinuous, kStatic };  // kStatic: the batch closes until its longest ends
enum class PolicyKind : std::uint8_t { kFcfs, kPriority };

struct EngineConfig {
  std::string model;               // GGUF file (first of a split) or Hugging Face folder
  std::string chat_template_file;  // overrides the model's own template
  KvType kv_type = KvType::kBF16;
  bool dequantize_f32 = false;                 // load any file as F32 weights: float32 arithmetic throughout
  bool kv_cache = true;                        // false: the naive mode, every token recomputes all before it
  std::uint32_t block_tokens = 16;             // 16, 32, 64, 128 or 256
  std::optional<std::uint64_t> kv_bytes;       // default: half of what memory leaves, see docs/kv.md
  std::optional<std::uint32_t> max_model_len;  // default: the model's context, lowered to what the pool holds
  std::uint32_t max_num_seqs = 64;
  std::uint32_t max_num_batched_tokens = 512;      // the token budget of a step, >= max_num_seqs
  std::uint32_t long_prefill_token_threshold = 0;  // most prompt tokens of one sequence in one step; 0: no limit
  std::uint32_t max_queued = 4096;
  Batching batching = Batching::kContinuous;
  PolicyKind policy = PolicyKind::kFcfs;
  std::uint32_t threads = 0;  // 0: the cores this process may use
};

}  // namespace octavo
