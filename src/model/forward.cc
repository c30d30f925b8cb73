#include "model/forward.h"

#include <algorithm>

#include "base/check.h"
#include "base/float_mode.h"
#include "model/rope.h"

namespace octavo {

void Model::forward(const Batch& batch) {
  const FloatMode mode;
  m_ = static_cast<std::uint32_t>(batch.tokens.size());
  list_attention(batch);
  embed(batch);
  for (std::uint32_t layer = 0; layer < spec_.layers.size(); ++layer) {
    attention_block(layer, batch);
    ffn_block(layer);
  }
}

void Model::embed(const Batch& batch) {
  residual_pending_ = false;
  for_row_tiles(pool_, m_, [&](std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = begin; i < end; ++i) {
      float* x = row(buffers_.x, i);
      kernels_.unpack_row(weights_.embedding, static_cast<std::uint32_t>(batch.tokens[i].value), x);
      if (spec_.embedding_scale != 1.0F) kernels_.scale(x, spec_.embedding_scale, spec_.width);
    }
  });
}

void Model::attention_block(std::uint32_t index, const Batch& batch) {
  const LayerWeights& w = weights_.layers[index];
  const LayerSpec& layer = spec_.layers[index];
  StepBuffers& b = buffers_;

  open_block(w.attn_norm, {&w.q, &w.k, &w.v});
  linear_.multiply({{&w.q, w.q_bias, b.q}, {&w.k, w.k_bias, b.k}, {&w.v, w.v_bias, b.v}});
  rotate_and_store(index, batch);
  attend(index, batch);
  linear_.prepare(b.attended, m_, layer.num_heads * layer.head_dim, {&w.attn_output}, [](std::uint32_t) {});
  close_block(w.attn_output, w.post_attn_norm);
}

void Model::ffn_block(std::uint32_t index) {
  const LayerWeights& w = weights_.layers[index];
  const std::uint32_t width = spec_.layers[index].ffn_width;
  const Activation activation = spec_.ffn == FfnKind::kSwiGlu ? Activation::kSilu : Activation::kGeluTanh;
  StepBuffers& b = buffers_;

  open_block(w.ffn_norm, {&w.gate, &w.up});
  linear_.multiply({{&w.gate, nullptr, b.gate}, {&w.up, nullptr, b.up}});
  linear_.prepare(b.gate, m_, width, {&w.down}, [&](std::uint32_t i) {
    float* gate = b.gate + std::uint64_t{i} * width;
    kernels_.gated(activation, gate, b.up + std::uint64_t{i} * width, width, gate);
  });
  close_block(w.down, w.post_ffn_norm);
}

/// x += what the block before left; normed = rms_norm(x), ready for `readers`.
void Model::open_block(const float* gain, Linear::Readers readers) {
  linear_.prepare(buffers_.normed, m_, spec_.width, readers, [&](std::uint32_t i) {
    float* x = row(buffers_.x, i);
    if (residual_pending_) {
      float* added = row(buffers_.block_out, i);
      if (post_gain_ != nullptr) kernels_.rms_norm(added, post_gain_, spec_.norm_eps, spec_.width, added);
      kernels_.add(x, added, spec_.width);
    }
    kernels_.rms_norm(x, gain, spec_.norm_eps, spec_.width, row(buffers_.normed, i));
  });
}

void Model::close_block(const PackedMatrix& w, const float* post_gain) {
  linear_.multiply({{&w, nullptr, buffers_.block_out}});
  residual_pending_ = true;
  post_gain_ = post_gain;
}

/// Norms of q and k heads, rope, then keys and values into their blocks.
void Model::rotate_and_store(std::uint32_t index, const Batch& batch) {
  const LayerWeights& w = weights_.layers[index];
  const LayerSpec& layer = spec_.layers[index];
  const std::span<const KvRow> rows = batch.rows_of(store_.groups().layers[index].group);
  const PagedKv kv = store_.view(index);
  const RopeTable rope{rope_tables_[layer.rope].as<const float>(), spec_.ropes[layer.rope].rot_dims};
  const auto norm_and_rotate = [&](float* heads, std::uint32_t count, const float* gain, std::uint32_t position) {
    for (std::uint32_t h = 0; gain != nullptr && h < count; ++h) {
      float* head = heads + std::uint64_t{h} * layer.head_dim;
      kernels_.rms_norm(head, gain, spec_.norm_eps, layer.head_dim, head);
    }
    kernels_.rope(heads, count, layer.head_dim, rope, position);
  };
  for_row_tiles(pool_, m_, [&](std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = begin; i < end; ++i) {
      float* q = buffers_.q + std::uint64_t{i} * layer.num_heads * layer.head_dim;
      float* k = buffers_.k + std::uint64_t{i} * layer.num_kv_heads * layer.head_dim;
      norm_and_rotate(q, layer.num_heads, w.q_norm, batch.positions[i]);
      norm_and_rotate(k, layer.num_kv_heads, w.k_norm, batch.positions[i]);
      const KvRow& kv_row = rows[row_of_token_[i]];
      kernels_.store_kv(kv, kv_row, i - kv_row.act_row, buffers_.k, buffers_.v);
    }
  });
}

void Model::attend(std::uint32_t index, const Batch& batch) {
  const LayerSpec& layer = spec_.layers[index];
  const GroupId group = store_.groups().layers[index].group;
  const std::span<const KvRow> rows = batch.rows_of(group);
  const AttentionTasks& work = work_[group.value];
  const PagedKv kv = store_.view(index);
  const AttnSpec spec{layer.num_heads, layer.window, spec_.attn_scale, spec_.attn_soft_cap, nullptr};
  StepBuffers& b = buffers_;
  pool_.run(static_cast<std::uint32_t>(work.tasks.size()), [&](std::uint32_t tile, std::uint32_t worker) {
    const AttnTask& task = work.tasks[tile];
    kernels_.attend(kv, spec, rows[task.row], task, b.q, b.attended, b.states, b.scratch + worker * b.scratch_bytes);
  });
  pool_.run(static_cast<std::uint32_t>(work.merges.size()), [&](std::uint32_t tile, std::uint32_t) {
    kernels_.merge(spec, layer.num_kv_heads, layer.head_dim, work.merges[tile], b.states, b.attended);
  });
}

std::span<float> Model::logits(std::span<const std::uint32_t> token_indices) {
  const FloatMode mode;
  const auto count = static_cast<std::uint32_t>(token_indices.size());
  OCTAVO_CHECK(count <= limits_.max_logit_rows, "more logit rows asked for than one call computes");
  // Only these tokens finish the residual stream, in a copy: a token may be asked for again.
  linear_.prepare(buffers_.normed, count, spec_.width, {&weights_.head}, [&](std::uint32_t i) {
    float* out = row(buffers_.normed, i);
    std::copy_n(row(buffers_.block_out, token_indices[i]), spec_.width, out);
    if (post_gain_ != nullptr) kernels_.rms_norm(out, post_gain_, spec_.norm_eps, spec_.width, out);
    kernels_.add(out, row(buffers_.x, token_indices[i]), spec_.width);
    kernels_.rms_norm(out, weights_.output_norm, spec_.norm_eps, spec_.width, out);
  });
  linear_.multiply({{&weights_.head, nullptr, buffers_.logits}});
  if (spec_.final_soft_cap != 0) {
    for_row_tiles(pool_, count, [&](std::uint32_t begin, std::uint32_t end) {
      for (std::uint32_t i = begin; i < end; ++i) {
        float* logits = buffers_.logits + std::uint64_t{i} * spec_.vocab_size;
        kernels_.soft_cap(logits, spec_.final_soft_cap, spec_.vocab_size);
      }
    });
  }
  return {buffers_.logits, std::uint64_t{count} * spec_.vocab_size};
}

// What follows prepares a model and a step: no arithmetic of the network.

namespace {

/// A bit per ActKind that any matrix multiplies with.
std::uint32_t act_kinds(const Weights& weights) {
  std::uint32_t kinds = 0;
  const auto note = [&](const PackedMatrix& w) { kinds |= 1U << static_cast<std::uint32_t>(act_kind_of(w.format)); };
  note(weights.head);
  for (const LayerWeights& w : weights.layers) {
    for (const PackedMatrix* m : {&w.q, &w.k, &w.v, &w.attn_output, &w.gate, &w.up, &w.down}) note(*m);
  }
  return kinds;
}

}  // namespace

Model::Model(const ModelSpec& spec, const Weights& weights, const Kernels& kernels, const KvStore& store,
             ThreadPool& pool, const ForwardLimits& limits)
    : spec_(spec),
      weights_(weights),
      kernels_(kernels),
      store_(store),
      pool_(pool),
      limits_(limits),
      buffers_(spec, limits, pool.size()),
      linear_(kernels, pool, max_rows(limits), max_width(spec), act_kinds(weights)) {
  for (const RopeSpec& rope : spec.ropes) {
    const std::vector<float> frequencies = inv_freq(rope);
    const AlignedBuffer& table = rope_tables_.emplace_back(rope_bytes(rope, limits));
    fill_rope_table(frequencies.data(), rope.rot_dims / 2, limits.max_positions, table.as<float>());
  }
  for (std::uint32_t layer = 0; layer < spec.layers.size(); ++layer) {
    const std::uint32_t group = store.groups().layers[layer].group.value;
    if (group >= layer_of_group_.size()) layer_of_group_.resize(group + 1);
    layer_of_group_[group] = layer;
  }
  work_.resize(layer_of_group_.size());
  for (std::uint32_t group = 0; group < work_.size(); ++group) {  // whatever a step may ask: nothing grows later
    const std::size_t tiles = std::size_t{limits.max_tokens} * spec.layers[layer_of_group_[group]].num_kv_heads;
    work_[group].tasks.reserve(tiles + buffers_.max_states);
    work_[group].merges.reserve(tiles);
  }
  row_of_token_.reserve(limits.max_tokens);
}

std::vector<std::span<std::byte>> Model::memory() const {
  std::vector<std::span<std::byte>> parts = {buffers_.memory(), linear_.memory()};
  for (const AlignedBuffer& table : rope_tables_) parts.emplace_back(table.data(), table.size());
  return parts;
}

/// Which row each token belongs to, and the attention work of every group.
void Model::list_attention(const Batch& batch) {
  row_of_token_.clear();
  const std::span<const KvRow> rows = batch.rows_of({0});
  for (std::uint32_t r = 0; r < batch.num_rows; ++r) {
    row_of_token_.insert(row_of_token_.end(), rows[r].num_tokens, r);
  }
  for (std::uint32_t g = 0; g < work_.size(); ++g) {
    const LayerSpec& layer = spec_.layers[layer_of_group_[g]];
    list_attention_tasks(batch.rows_of({g}), layer.num_kv_heads, layer.num_heads / layer.num_kv_heads, layer.window,
                         pool_.size(), buffers_.max_states, work_[g]);
  }
}

}  // namespace octavo
