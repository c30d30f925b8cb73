#include "model/weights.h"

#include <algorithm>
#include <string>

#include "base/float_mode.h"
#include "kernels/pack.h"
#include "tensor/dequantize.h"

namespace octavo {
namespace {

constexpr std::uint64_t align64(std::uint64_t n) { return (n + 63) / 64 * 64; }
constexpr std::uint32_t kPanelsPerTile = 8;

/// One tensor to place: a matrix to pack or a vector to widen, and where its address goes.
struct Placement {
  SourceTensor source;
  PackedMatrix* matrix = nullptr;
  const float** vector = nullptr;
  std::uint64_t offset = 0, bytes = 0;
};

/// First lists everything (sizes, then one allocation), then fills it.
class Packer {
 public:
  Packer(const Checkpoint& checkpoint, bool as_f32) : checkpoint_(checkpoint), as_f32_(as_f32) {}

  void matrix(PackedMatrix& out, Role role, std::uint32_t layer = 0) {
    const auto source = checkpoint_.tensor(role, layer);
    if (!source) return;
    out.n = source->rows;
    out.k = source->cols;
    out.format = as_f32_ ? WeightFormat::kF32 : packed_format_of(source->type);
    out.panel_bytes = panel_bytes(out.format, out.k);
    place({*source, &out, nullptr, 0, out.panel_bytes * out.num_panels()});
  }

  void vector(const float*& out, Role role, std::uint32_t layer = 0) {
    const auto source = checkpoint_.tensor(role, layer);
    if (!source) return;
    place({*source, nullptr, &out, 0, sizeof(float) * std::uint64_t{source->cols} * source->rows});
  }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  void fill(std::byte* storage, ThreadPool& pool, const PackProgress& progress) {
    std::uint64_t done = 0;
    for (const Placement& p : placements_) {
      std::byte* out = storage + p.offset;
      if (p.vector != nullptr) {
        auto* values = reinterpret_cast<float*>(out);
        dequantize(p.source.type, p.source.data, p.bytes / sizeof(float), values);
        *p.vector = values;
      } else {
        pack(p, out, pool);
        p.matrix->panels = out;
      }
      done += p.bytes;
      if (progress) progress(done, bytes_);
    }
  }

 private:
  void place(Placement placement) {
    placement.offset = bytes_;
    bytes_ += align64(placement.bytes);
    placements_.push_back(placement);
  }

  static void pack(const Placement& p, std::byte* out, ThreadPool& pool) {
    const std::uint32_t panels = p.matrix->num_panels();
    pool.run((panels + kPanelsPerTile - 1) / kPanelsPerTile, [&](std::uint32_t tile, std::uint32_t) {
      const FloatMode exact(FloatMode::Kind::kIeee);
      const std::uint32_t begin = tile * kPanelsPerTile;
      pack_panels(p.source.type, p.source.data, p.source.rows, p.source.cols, p.matrix->format, begin,
                  std::min(begin + kPanelsPerTile, panels), out);
    });
  }

  const Checkpoint& checkpoint_;
  bool as_f32_;
  std::uint64_t bytes_ = 0;
  std::vector<Placement> placements_;
};

}  // namespace

Result<Weights> Weights::load(const Checkpoint& checkpoint, bool as_f32, std::uint64_t memory_limit_bytes,
                              ThreadPool& pool, const PackProgress& progress) {
  const ModelSpec& spec = checkpoint.spec();
  Weights w;
  w.layers.resize(spec.layers.size());
  Packer packer(checkpoint, as_f32);
  packer.matrix(w.embedding, Role::kTokenEmbedding);
  for (std::uint32_t i = 0; i < w.layers.size(); ++i) {
    LayerWeights& layer = w.layers[i];
    packer.vector(layer.attn_norm, Role::kAttnNorm, i);
    packer.matrix(layer.q, Role::kQ, i);
    packer.vector(layer.q_bias, Role::kQBias, i);
    packer.matrix(layer.k, Role::kK, i);
    packer.vector(layer.k_bias, Role::kKBias, i);
    packer.matrix(layer.v, Role::kV, i);
    packer.vector(layer.v_bias, Role::kVBias, i);
    packer.vector(layer.q_norm, Role::kQNorm, i);
    packer.vector(layer.k_norm, Role::kKNorm, i);
    packer.matrix(layer.attn_output, Role::kAttnOutput, i);
    packer.vector(layer.post_attn_norm, Role::kPostAttnNorm, i);
    packer.vector(layer.ffn_norm, Role::kFfnNorm, i);
    packer.matrix(layer.gate, Role::kGate, i);
    packer.matrix(layer.up, Role::kUp, i);
    packer.matrix(layer.down, Role::kDown, i);
    packer.vector(layer.post_ffn_norm, Role::kPostFfnNorm, i);
  }
  packer.vector(w.output_norm, Role::kOutputNorm);
  if (!spec.tied_embeddings) packer.matrix(w.head, Role::kOutput);

  if (packer.bytes() > memory_limit_bytes) {
    return Error{ErrorCode::kExhausted,
                 checkpoint.info().path + ": the packed weights need " + std::to_string(packer.bytes() >> 20) +
                     " MiB, but only " + std::to_string(memory_limit_bytes >> 20) +
                     " MiB are available: free memory, raise the cgroup limit or take a smaller quantisation",
                 ""};
  }
  w.storage_ = AlignedBuffer(packer.bytes());
  packer.fill(w.storage_.data(), pool, progress);
  if (spec.tied_embeddings) w.head = w.embedding;
  return w;
}

}  // namespace octavo
