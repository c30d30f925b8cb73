// The activations of one step, carved from one allocation that is sized once for the largest step.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory.h"
#include "model/activation_bytes.h"
#include "model/spec.h"

namespace octavo {

struct StepBuffers {
  StepBuffers(const ModelSpec& spec, const ForwardLimits& limits, std::uint32_t threads);
  [[nodiscard]] static std::uint64_t bytes(const ModelSpec& spec, const ForwardLimits& limits, std::uint32_t threads);

  float* x = nullptr;            // [m, width] residual stream
  float* normed = nullptr;       // [m, width]
  float* block_out = nullptr;    // [m, width] what a block adds to x
  float* q = nullptr;            // [m, num_heads, head_dim]
  float* k = nullptr;            // [m, num_kv_heads, head_dim]
  float* v = nullptr;            // like k
  float* attended = nullptr;     // like q
  float* gate = nullptr;         // [m, ffn_width]
  float* up = nullptr;           // like gate
  float* logits = nullptr;       // [max_logit_rows, vocab]
  float* states = nullptr;       // [max_states, attn_state_floats] of partial attention tasks
  std::byte* scratch = nullptr;  // [threads, scratch_bytes] for attend
  std::uint32_t max_states = 0;
  std::size_t scratch_bytes = 0;

  [[nodiscard]] std::span<std::byte> memory() const { return {arena_.data(), arena_.size()}; }

 private:
  StepBuffers() = default;
  std::uint64_t carve(const ModelSpec& spec, const ForwardLimits& limits, std::uint32_t threads, std::byte* base);
  AlignedBuffer arena_;
};

}  // namespace octavo
