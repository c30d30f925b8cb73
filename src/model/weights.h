// All weights of a model, packed for the kernels: one run of bytes, in memory or in a mapped file.
//
// Threads: immutable after load.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "model/checkpoint.h"
#include "octavo/model_info.h"
#include "tensor/packed.h"
#include "tensor/packed_sink.h"

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

/// Keeps alive what weights point into.
using WeightStorage = std::shared_ptr<const void>;

class Weights {
 public:
  PackedMatrix embedding;              // [vocab, width]
  PackedMatrix head;                   // the same panels where embeddings are tied
  const float* output_norm = nullptr;  // [width]
  std::vector<LayerWeights> layers;

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::span<const std::byte> packed() const { return {embedding.panels, bytes_}; }  // it comes first

 private:
  friend class WeightsPlan;
  WeightStorage storage_;
  std::uint64_t bytes_ = 0;
};

/// Where each tensor goes in one run of packed bytes, in the order of its use. Equal checkpoints give equal plans, and
/// equal bytes, on every machine.
class WeightsPlan {
 public:
  /// A matrix to pack or a vector to widen.
  struct Placement {
    Role role;
    std::uint32_t layer;
    TensorShape shape;
    PackedMatrix matrix;  // of a matrix: all but its address
    bool is_matrix;
    std::uint64_t offset, bytes;  // the next one starts at a multiple of 64
  };

  /// The checkpoint must outlive the plan.
  WeightsPlan(const Checkpoint& checkpoint, Numerics numerics);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::span<const Placement> placements() const { return placements_; }
  /// All that the packed bytes depend on beside the source: place, size and format of every tensor, and what packing
  /// makes of a test pattern, so that no change of a format goes unnoticed.
  [[nodiscard]] std::string description() const;

  /// Hands all bytes to the sink, in pieces of one panel or up to 8 MiB. False: the sink took no more.
  [[nodiscard]] bool pack(PackedSink& sink, ThreadPool& pool, const PackProgress& progress) const;

  /// The weights whose packed bytes begin at `packed` (64-byte aligned) and live as long as `storage`.
  [[nodiscard]] Weights bind(const std::byte* packed, WeightStorage storage) const;

 private:
  void place(Role role, std::uint32_t layer, bool is_matrix);
  static void bind(const Placement& p, const std::byte* at, Weights& out);
  [[nodiscard]] bool pack_matrix(const Placement& p, PackedSink& sink, ThreadPool& pool,
                                 const std::function<void(std::uint64_t)>& done) const;

  const Checkpoint& checkpoint_;
  Numerics numerics_;
  std::uint64_t bytes_ = 0;
  std::vector<Placement> placements_;
};

}  // namespace octavo
