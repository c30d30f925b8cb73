// The forward pass: token ids in, logits out for the tokens that ask. Reads top to bottom in forward.cc.
//
// A step computes any mix of rows: decode, prompt chunks, several sequences. Every token's bits depend on its own
// sequence alone (docs/numerics.md). Layer by layer all rows store K and V before any row reads.
// Threads: one caller at a time (the engine thread); work inside is spread over the pool.
// Memory: all buffers are sized in the constructor; a warm step does not allocate.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/memory.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "kv/kv_store.h"
#include "model/attention_tasks.h"
#include "model/linear.h"
#include "model/spec.h"
#include "model/step_buffers.h"
#include "model/weights.h"

namespace octavo {

/// What one step computes. `kv_rows[g * num_rows + r]` is row r as KV group g addresses it; rows tile the tokens.
struct Batch {
  std::span<const TokenId> tokens;           // [m]
  std::span<const std::uint32_t> positions;  // [m], absolute
  std::span<const KvRow> kv_rows;            // [groups, rows]
  std::uint32_t num_rows = 0;

  [[nodiscard]] std::span<const KvRow> rows_of(GroupId group) const {
    return kv_rows.subspan(std::size_t{group.value} * num_rows, num_rows);
  }
};

class Model {
 public:
  /// Everything passed by reference must outlive the model.
  Model(const ModelSpec& spec, const Weights& weights, const Kernels& kernels, const KvStore& store, ThreadPool& pool,
        const ForwardLimits& limits);

  /// Runs all layers; logits() then serves any token of the batch.
  void forward(const Batch& batch);

  /// Raw logits (soft-cap applied) of tokens of the batch: [indices, vocab_size], valid until the next call.
  [[nodiscard]] std::span<float> logits(std::span<const std::uint32_t> token_indices);  // at most max_logit_rows

  /// All that activation_bytes() counts.
  [[nodiscard]] std::vector<std::span<std::byte>> memory() const;

 private:
  void list_attention(const Batch& batch);
  void embed(const Batch& batch);
  void attention_block(std::uint32_t index, const Batch& batch);
  void ffn_block(std::uint32_t index);
  void open_block(const float* gain, Linear::Readers readers);
  void close_block(const PackedMatrix& w, const float* post_gain);
  void rotate_and_store(std::uint32_t index, const Batch& batch);
  void attend(std::uint32_t index, const Batch& batch);

  /// Row `index` of a buffer [m, width].
  [[nodiscard]] float* row(float* buffer, std::uint32_t index) const {
    return buffer + std::uint64_t{index} * spec_.width;
  }

  const ModelSpec& spec_;
  const Weights& weights_;
  const Kernels& kernels_;
  const KvStore& store_;
  ThreadPool& pool_;
  ForwardLimits limits_;
  StepBuffers buffers_;
  Linear linear_;
  std::vector<AlignedBuffer> rope_tables_;     // by RopeSpec: [positions, rot_dims / 2, 2]
  std::vector<std::uint32_t> layer_of_group_;  // any one: layers of a group attend alike
  std::vector<AttentionTasks> work_;           // by KV group
  std::vector<std::uint32_t> row_of_token_;    // [m]
  std::uint32_t m_ = 0;                        // tokens of this step

  // block_out waits to be added to x, after a norm where the model has one: the next block's first region does it.
  bool residual_pending_ = false;
  const float* post_gain_ = nullptr;
};

}  // namespace octavo
