#include "model/step_buffers.h"

#include <algorithm>

#include "kernels/kernels.h"

namespace octavo {
namespace {

/// Room for the states of split tasks: 16 tokens at some depth, or one token of the longest sequence.
constexpr std::uint32_t kTokenSplits = 1024;

}  // namespace

StepBuffers::StepBuffers(const ModelSpec& spec, const ForwardLimits& limits, std::uint32_t threads)
    : arena_(bytes(spec, limits, threads)) {
  carve(spec, limits, threads, arena_.data());
}

std::uint64_t StepBuffers::bytes(const ModelSpec& spec, const ForwardLimits& limits, std::uint32_t threads) {
  return StepBuffers().carve(spec, limits, threads, nullptr);
}

/// Lays the buffers out from `base` and returns their total; a null base only counts.
std::uint64_t StepBuffers::carve(const ModelSpec& spec, const ForwardLimits& limits, std::uint32_t threads,
                                 std::byte* base) {
  std::uint64_t offset = 0;
  const auto take = [&](auto*& field, std::uint64_t count) {
    if (base != nullptr) field = reinterpret_cast<std::remove_reference_t<decltype(field)>>(base + offset);
    offset += (count * sizeof(*field) + 63) / 64 * 64;
  };
  std::uint64_t q_width = 0;
  std::uint64_t kv_width = 0;
  std::uint64_t ffn_width = 0;
  for (const LayerSpec& layer : spec.layers) {
    q_width = std::max(q_width, std::uint64_t{layer.num_heads} * layer.head_dim);
    kv_width = std::max(kv_width, std::uint64_t{layer.num_kv_heads} * layer.head_dim);
    ffn_width = std::max(ffn_width, std::uint64_t{layer.ffn_width});
    const std::uint32_t group = layer.num_heads / layer.num_kv_heads;
    scratch_bytes = std::max(scratch_bytes, (attend_scratch_bytes(group, layer.head_dim) + 63) / 64 * 64);
    const std::uint32_t longest = (limits.max_positions + kSplitTokens - 1) / kSplitTokens * layer.num_kv_heads;
    max_states = std::max(max_states, std::max(kTokenSplits, longest) * group);
  }
  std::uint64_t state_floats = 0;
  for (const LayerSpec& layer : spec.layers) {
    state_floats = std::max(state_floats, std::uint64_t{attn_state_floats(layer.head_dim)});
  }
  const std::uint64_t m = limits.max_tokens;
  take(x, m * spec.width);
  take(normed, std::max<std::uint64_t>(m, limits.max_logit_rows) * spec.width);
  take(block_out, m * spec.width);
  take(q, m * q_width);
  take(k, m * kv_width);
  take(v, m * kv_width);
  take(attended, m * q_width);
  take(gate, m * ffn_width);
  take(up, m * ffn_width);
  take(logits, std::uint64_t{limits.max_logit_rows} * spec.vocab_size);
  take(states, max_states * state_floats);
  take(scratch, threads * scratch_bytes);
  return offset;
}

}  // namespace octavo
