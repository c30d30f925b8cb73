// One query head of one token at a time, exactly in the contract's order:
//
// Scores: q . k (bf16: q rounded, tile-32 order over head_dim, else one chain), times scale, soft-cap, mask. Per split
// of 256 positions: m = largest visible score; p = exp(score - m), +0 where masked; l = sum of p, lane = position mod
// 16, tree; o = sum of p v (bf16: p rounded, an even and an odd chain per 16 positions; else one chain), then o + 0, so
// that a zero is +0 and masked positions cannot be seen even in its sign. Splits join in ascending order, the sink
// last.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/entries.h"
#include "kernels/ref/lanes.h"
#include "kernels/ref/math.h"
#include "tensor/dequantize.h"

namespace octavo::ref {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

float round_to_bf16(float x) { return bf16_to_f32(f32_to_bf16(x)); }

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <class T>
void store(std::byte* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

float load_number(KvType type, const std::byte* numbers, std::uint64_t index) {
  switch (type) {
    case KvType::kF32: return load<float>(numbers + 4 * index);
    case KvType::kF16: return f16_to_f32(load<std::uint16_t>(numbers + 2 * index));
    case KvType::kBF16: return bf16_to_f32(load<std::uint16_t>(numbers + 2 * index));
  }
  return 0;
}

void store_number(KvType type, std::byte* numbers, std::uint64_t index, float value) {
  switch (type) {
    case KvType::kF32: return store(numbers + 4 * index, value);
    case KvType::kF16: return store(numbers + 2 * index, f32_to_f16(value));
    case KvType::kBF16: return store(numbers + 2 * index, f32_to_bf16(value));
  }
}

/// One KV head's keys and values by absolute position; layout: tensor/paged_kv.h.
struct HeadKv {
  const PagedKv& kv;
  const KvRow& row;
  std::uint32_t kv_head;

  [[nodiscard]] std::byte* block(std::uint32_t pos) const {
    const std::uint64_t id = row.blocks[pos / kv.block_tokens - row.first_page].value;
    return kv.base + id * kv.layer_stride_bytes + kv_head * kv.head_stride_bytes;
  }
  [[nodiscard]] std::byte* k_cell(std::uint32_t pos) const {
    return block(pos) + pos % kv.block_tokens / kCellTokens * kv.k_cell_bytes;
  }
  [[nodiscard]] std::byte* v_cell(std::uint32_t pos) const {
    return block(pos) + kv.v_offset + pos % kv.block_tokens / kCellTokens * kv.v_cell_bytes;
  }
  [[nodiscard]] std::uint64_t k_index(std::uint32_t pos, std::uint32_t d) const {
    const std::uint32_t lane = pos % kCellTokens;
    return kv.type == KvType::kBF16 ? (d / 2 * kCellTokens + lane) * 2 + d % 2 : d * kCellTokens + lane;
  }
  [[nodiscard]] std::uint64_t v_index(std::uint32_t pos, std::uint32_t d) const {
    const std::uint32_t lane = pos % kCellTokens;
    return kv.type == KvType::kBF16 ? (lane / 2 * kv.head_dim + d) * 2 + lane % 2 : lane * kv.head_dim + d;
  }
  [[nodiscard]] float k(std::uint32_t pos, std::uint32_t d) const {
    return load_number(kv.type, k_cell(pos), k_index(pos, d));
  }
  [[nodiscard]] float v(std::uint32_t pos, std::uint32_t d) const {
    return load_number(kv.type, v_cell(pos), v_index(pos, d));
  }
};

float dot_tile32(const float* q, const HeadKv& head, std::uint32_t pos) {
  const std::uint32_t head_dim = head.kv.head_dim;
  float sum = 0;
  for (std::uint32_t begin = 0; begin < head_dim; begin += 32) {
    const std::uint32_t end = begin + 32 < head_dim ? begin + 32 : head_dim;
    float even = 0, odd = 0;
    for (std::uint32_t d = begin; d < end; d += 2) {
      even = std::fma(q[d], head.k(pos, d), even);
      odd = std::fma(q[d + 1], head.k(pos, d + 1), odd);
    }
    sum = sum + (even + odd);
  }
  return sum;
}

float dot_chain(const float* q, const HeadKv& head, std::uint32_t pos) {
  float sum = 0;
  for (std::uint32_t d = 0; d < head.kv.head_dim; ++d) sum = std::fma(q[d], head.k(pos, d), sum);
  return sum;
}

struct Range {
  std::uint32_t begin, end;
  [[nodiscard]] bool empty() const { return begin >= end; }
};

/// The positions of a split that a query at `pos` sees.
Range visible(const AttnSpec& spec, std::uint32_t pos, std::uint32_t split) {
  Range range{split * kSplitTokens, (split + 1) * kSplitTokens};
  if (range.end > pos + 1) range.end = pos + 1;
  if (spec.window != 0 && pos + 1 > spec.window && range.begin < pos + 1 - spec.window) {
    range.begin = pos + 1 - spec.window;
  }
  return range;
}

struct SoftmaxPart {
  float m, l;
  float* o;
};

void attend_split(const HeadKv& head, const AttnSpec& spec, Range range, const float* q, float* p, SoftmaxPart& part) {
  const bool bf16 = head.kv.type == KvType::kBF16;
  const std::uint32_t head_dim = head.kv.head_dim;

  part.m = kMinusInf;
  for (std::uint32_t pos = range.begin; pos < range.end; ++pos) {
    float score = (bf16 ? dot_tile32(q, head, pos) : dot_chain(q, head, pos)) * spec.scale;
    if (spec.soft_cap != 0) score = soft_cap(score, spec.soft_cap);
    p[pos % kSplitTokens] = score;
    part.m = score > part.m ? score : part.m;
  }

  Lanes sum;
  for (std::uint32_t pos = range.begin; pos < range.end; ++pos) {
    float& weight = p[pos % kSplitTokens];
    weight = exp(weight - part.m);
    sum[pos] = sum[pos] + weight;
    if (bf16) weight = round_to_bf16(weight);
  }
  part.l = sum.sum();

  for (std::uint32_t d = 0; d < head_dim; ++d) {
    float o = 0;
    if (bf16) {
      for (std::uint32_t pos = range.begin; pos < range.end;) {
        const std::uint32_t group_end = (pos / kCellTokens + 1) * kCellTokens;
        float chain[2] = {0, 0};  // even and odd positions
        for (; pos < group_end && pos < range.end; ++pos) {
          chain[pos % 2] = std::fma(p[pos % kSplitTokens], head.v(pos, d), chain[pos % 2]);
        }
        o = o + (chain[0] + chain[1]);
      }
    } else {
      for (std::uint32_t pos = range.begin; pos < range.end; ++pos)
        o = std::fma(p[pos % kSplitTokens], head.v(pos, d), o);
    }
    part.o[d] = o + 0.0F;
  }
}

/// sum = sum joined with the next part. An empty sum (l = 0) takes it over as it is.
void join(SoftmaxPart& sum, const SoftmaxPart& next, std::uint32_t head_dim) {
  if (sum.l == 0) {
    sum.m = next.m;
    sum.l = next.l;
    std::memcpy(sum.o, next.o, head_dim * sizeof(float));
    return;
  }
  const float m = next.m > sum.m ? next.m : sum.m;
  const float keep = exp(sum.m - m), take = exp(next.m - m);
  sum.m = m;
  sum.l = std::fma(next.l, take, sum.l * keep);
  for (std::uint32_t d = 0; d < head_dim; ++d) sum.o[d] = std::fma(next.o[d], take, sum.o[d] * keep);
}

/// Joins the sink, a part with m = sink, l = 1, o = 0, and divides.
void finish(SoftmaxPart& sum, const float* sink, std::uint32_t head_dim) {
  float keep = 1;
  if (sink != nullptr) {
    const float m = *sink > sum.m ? *sink : sum.m;
    keep = exp(sum.m - m);
    sum.l = std::fma(1.0F, exp(*sink - m), sum.l * keep);
  }
  for (std::uint32_t d = 0; d < head_dim; ++d) sum.o[d] = (sum.o[d] * keep) / sum.l;
}

const float* sink_of(const AttnSpec& spec, std::uint32_t head) {
  return spec.sinks == nullptr ? nullptr : spec.sinks + head;
}

}  // namespace

void store_kv(const PagedKv& kv, const KvRow& row, std::uint32_t token, const float* k, const float* v) {
  const std::uint32_t pos = row.first_pos + token;
  for (std::uint32_t h = 0; h < kv.num_kv_heads; ++h) {
    const HeadKv head{kv, row, h};
    const std::uint64_t from = (std::uint64_t{row.act_row + token} * kv.num_kv_heads + h) * kv.head_dim;
    for (std::uint32_t d = 0; d < kv.head_dim; ++d) {
      store_number(kv.type, head.k_cell(pos), head.k_index(pos, d), k[from + d]);
      store_number(kv.type, head.v_cell(pos), head.v_index(pos, d), v[from + d]);
    }
  }
}

void attend(const PagedKv& kv, const AttnSpec& spec, const KvRow& row, const AttnTask& task, const float* q, float* out,
            float* states, std::byte* scratch) {
  const std::uint32_t group = spec.num_heads / kv.num_kv_heads, head_dim = kv.head_dim;
  const HeadKv head{kv, row, task.kv_head};
  float* p = reinterpret_cast<float*>(scratch);
  float* rounded_q = p + kSplitTokens;
  for (std::uint32_t token = task.token_begin; token < task.token_end; ++token) {
    for (std::uint32_t g = 0; g < group; ++g) {
      const std::uint32_t query_head = task.kv_head * group + g;
      const std::uint64_t at = (std::uint64_t{row.act_row + token} * spec.num_heads + query_head) * head_dim;
      const bool direct = task.state == AttnTask::kDirect;
      const std::uint64_t index = std::uint64_t{task.state} + (token - task.token_begin) * group + g;
      float* state = direct ? nullptr : states + index * attn_state_floats(head_dim);

      for (std::uint32_t d = 0; d < head_dim; ++d) {
        rounded_q[d] = kv.type == KvType::kBF16 ? round_to_bf16(q[at + d]) : q[at + d];
      }
      SoftmaxPart sum{0, 0, out + at};
      SoftmaxPart part{0, 0, direct ? rounded_q + head_dim : state + 16};
      for (std::uint32_t split = task.split_begin; split < task.split_end; ++split) {
        const Range range = visible(spec, row.first_pos + token, split);
        if (range.empty()) continue;
        attend_split(head, spec, range, rounded_q, p, part);
        if (direct) join(sum, part, head_dim);
      }
      if (direct) {
        finish(sum, sink_of(spec, query_head), head_dim);
      } else {
        state[0] = part.m;
        state[1] = part.l;
      }
    }
  }
}

void merge(const AttnSpec& spec, std::uint32_t num_kv_heads, std::uint32_t head_dim, const MergeTask& task,
           const float* states, float* out) {
  const std::uint32_t group = spec.num_heads / num_kv_heads;
  for (std::uint32_t g = 0; g < group; ++g) {
    const std::uint32_t query_head = task.kv_head * group + g;
    SoftmaxPart sum{0, 0, out + (std::uint64_t{task.act_row} * spec.num_heads + query_head) * head_dim};
    for (std::uint32_t split = 0; split < task.num_splits; ++split) {
      const std::uint64_t index = std::uint64_t{task.state_begin} + split * task.states_per_split + g;
      const float* state = states + index * attn_state_floats(head_dim);
      if (state[1] == 0) continue;  // no visible token
      join(sum, {state[0], state[1], const_cast<float*>(state) + 16}, head_dim);
    }
    finish(sum, sink_of(spec, query_head), head_dim);
  }
}

}  // namespace octavo::ref
