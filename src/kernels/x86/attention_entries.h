// The entries of a vector table, over attention_impl.h.
#pragma once
#include "kernels/x86/attention_impl.h"

namespace octavo::OCTAVO_ISA {
namespace {

template <class T>
void put(std::byte* cell, std::uint32_t index, T value) {
  __builtin_memcpy(cell + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

void store_kv(const PagedKv& kv, const KvRow& row, std::uint32_t token, const float* k, const float* v) {
  const std::uint32_t pos = row.first_pos + token, slot = pos % kCellTokens, head_dim = kv.head_dim;
  for (std::uint32_t h = 0; h < kv.num_kv_heads; ++h) {
    const HeadKv head{kv, row, h};
    std::byte* k_cell = head.k_cell(pos);
    std::byte* v_cell = head.v_cell(pos);
    const std::uint64_t from = (std::uint64_t{row.act_row + token} * kv.num_kv_heads + h) * head_dim;
    const auto lanes_of = [](std::uint32_t d, std::uint32_t n) { return smaller(n - d, 16); };
    for_lanes(head_dim, [&](std::uint32_t d, auto lanes) {
      const V16f key = load(k + from + d, lanes), value = load(v + from + d, lanes);
      const std::uint32_t n = lanes_of(d, head_dim);
      if (kv.type == KvType::kF32) {
        float keys[16];
        store(keys, key);
        for (std::uint32_t i = 0; i < n; ++i) put(k_cell, (d + i) * kCellTokens + slot, keys[i]);
        store(reinterpret_cast<float*>(v_cell) + slot * head_dim + d, value, lanes);
        return;
      }
      std::uint16_t keys[16], values[16];
      if (kv.type == KvType::kF16) {
        store_f16(keys, key);
        store_f16(values, value);
        for (std::uint32_t i = 0; i < n; ++i) put(k_cell, (d + i) * kCellTokens + slot, keys[i]);
        for (std::uint32_t i = 0; i < n; ++i) put(v_cell, slot * head_dim + d + i, values[i]);
      } else {
        store_low_halves(keys, shift_right<16>(bf16_high(key)));
        store_low_halves(values, shift_right<16>(bf16_high(value)));
        for (std::uint32_t i = 0; i < n; ++i) put(k_cell, ((d + i) / 2 * kCellTokens + slot) * 2 + i % 2, keys[i]);
        for (std::uint32_t i = 0; i < n; ++i) put(v_cell, (slot / 2 * head_dim + d + i) * 2 + slot % 2, values[i]);
      }
    });
  }
}

void attend(const PagedKv& kv, const AttnSpec& spec, const KvRow& row, const AttnTask& task, const float* q, float* out,
            float* states, std::byte* scratch) {
  attend_with<VectorCells>(kv, spec, row, task, q, out, states, scratch);
}

void merge(const AttnSpec& spec, std::uint32_t num_kv_heads, std::uint32_t head_dim, const MergeTask& task,
           const float* states, float* out) {
  const std::uint32_t group = spec.num_heads / num_kv_heads, stride = state_floats(head_dim);
  for (std::uint32_t g = 0; g < group; ++g) {
    const std::uint32_t query_head = task.kv_head * group + g;
    float* o = out + (std::uint64_t{task.act_row} * spec.num_heads + query_head) * head_dim;
    SoftmaxPart sum{0, 0};
    for (std::uint32_t split = 0; split < task.num_splits; ++split) {
      const float* state = states + (std::uint64_t{task.state_begin} + split * task.states_per_split + g) * stride;
      if (state[1] != 0) join(sum, o, {state[0], state[1]}, state + 16, head_dim);
    }
    finish(sum, o, spec, query_head, head_dim);
  }
}

}  // namespace octavo::OCTAVO_ISA
