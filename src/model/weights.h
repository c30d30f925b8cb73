// All weights of a model, packed for the kernels: one allocation, filled once at load.
//
// Threads: immutable after load.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "model/checkpoint.h"
#include "octavo/result.h"
#include "tensor/packed.h"

namespace octavo {

/// Gains and biases are f32 vectors; nullptr where the model has none.
struct LayerWeights {
  const float* attn_norm = nullptr;   // [width]
  PackedMatrix q, k, v, attn_output;  // [heads * head_dim, width] and back
  const float* q_bias = nullptr;      // [num_heads * head_dim]
  const float* k_bias = nullptr;      // [num_kv_heads * head_dim]
  const float* v_bias = nullptr;
  const float* q_norm = nullptr;  // [head_dim]
  const float* k_norm = nullptr;
  const float* post_attn_norm = nullptr;  // [width]
  const float* ffn_norm = nullptr;
  PackedMatrix gate, up, down;  // [ffn_width, width] and back
  const float* post_ffn_norm = nullptr;
};

/// How far packing is: `done` of `total` bytes.
using PackProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

class Weights {
 public:
  /// `as_f32`: every matrix becomes F32 (--dequantize f32). Refuses what `memory_limit_bytes` cannot hold.
  [[nodiscard]] static Result<Weights> load(const Checkpoint& checkpoint, bool as_f32, std::uint64_t memory_limit_bytes,
                                            ThreadPool& pool, const PackProgress& progress);

  PackedMatrix embedding;              // [vocab, width]
  PackedMatrix head;                   // the same panels where embeddings are tied
  const float* output_norm = nullptr;  // [width]
  std::vector<LayerWeights> layers;

  [[nodiscard]] std::uint64_t bytes() const { return storage_.size(); }

 private:
  AlignedBuffer storage_;
};

}  // namespace octavo
