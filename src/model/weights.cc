#include "model/weights.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/pack.h"
#include "tensor/dequantize.h"

namespace octavo {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;
constexpr std::uint32_t kPanelsPerTile = 8, kPanelRows = 16;

constexpr std::uint64_t align64(std::uint64_t n) { return (n + 63) / 64 * 64; }

struct LayerTensor {
  Role role;
  PackedMatrix LayerWeights::*matrix;
  const float* LayerWeights::*vector;
};

/// In the order in which a step reads them.
constexpr LayerTensor kLayerTensors[] = {
    {Role::kAttnNorm, nullptr, &LayerWeights::attn_norm},
    {Role::kQ, &LayerWeights::q, nullptr},
    {Role::kQBias, nullptr, &LayerWeights::q_bias},
    {Role::kK, &LayerWeights::k, nullptr},
    {Role::kKBias, nullptr, &LayerWeights::k_bias},
    {Role::kV, &LayerWeights::v, nullptr},
    {Role::kVBias, nullptr, &LayerWeights::v_bias},
    {Role::kQNorm, nullptr, &LayerWeights::q_norm},
    {Role::kKNorm, nullptr, &LayerWeights::k_norm},
    {Role::kAttnOutput, &LayerWeights::attn_output, nullptr},
    {Role::kPostAttnNorm, nullptr, &LayerWeights::post_attn_norm},
    {Role::kFfnNorm, nullptr, &LayerWeights::ffn_norm},
    {Role::kGate, &LayerWeights::gate, nullptr},
    {Role::kUp, &LayerWeights::up, nullptr},
    {Role::kDown, &LayerWeights::down, nullptr},
    {Role::kPostFfnNorm, nullptr, &LayerWeights::post_ffn_norm},
};

std::uint64_t row_bytes(const TensorShape& shape) {
  const TypeTraits& traits = traits_of(shape.type);
  return std::uint64_t{shape.cols} / traits.block_size * traits.block_bytes;
}

/// Of a panel packed from arbitrary blocks: another layout gives another hash. No scale in them is infinite or no
/// number.
std::uint64_t pattern_hash(TensorType type, WeightFormat format) {
  const std::uint32_t cols = traits_of(type).block_size == 256 ? 512 : 288;  // full groups of cells and a part of one
  std::vector<std::byte> rows(kPanelRows * row_bytes({type, kPanelRows, cols}));
  std::uint32_t random = 1;
  for (std::byte& b : rows) {
    random = random * 1664525 + 1013904223;
    b = static_cast<std::byte>(random >> 24 & 0xBF);
  }
  std::vector<std::byte> panel(panel_bytes(format, cols));
  const FloatMode exact(FloatMode::Kind::kIeee);
  pack_panels(type, rows.data(), kPanelRows, cols, format, 0, 1, panel.data());
  return XXH3_64bits(panel.data(), panel.size());
}

WeightFormat format_of(TensorType type, Numerics numerics) {
  switch (numerics) {
    case Numerics::kInt8: break;
    case Numerics::kBF16: return WeightFormat::kBF16;
    case Numerics::kF32: return WeightFormat::kF32;
  }
  return packed_format_of(type);
}

}  // namespace

WeightsPlan::WeightsPlan(const Checkpoint& checkpoint, Numerics numerics)
    : checkpoint_(checkpoint), numerics_(numerics) {
  const ModelSpec& spec = checkpoint.spec();
  place(Role::kTokenEmbedding, 0, true);
  for (std::uint32_t layer = 0; layer < spec.layers.size(); ++layer) {
    for (const LayerTensor& tensor : kLayerTensors) place(tensor.role, layer, tensor.matrix != nullptr);
  }
  place(Role::kOutputNorm, 0, false);
  if (!spec.tied_embeddings) place(Role::kOutput, 0, true);
}

void WeightsPlan::place(Role role, std::uint32_t layer, bool is_matrix) {
  const auto shape = checkpoint_.shape(role, layer);
  if (!shape) return;
  Placement p{role, layer, *shape, {}, is_matrix, bytes_, 0};
  if (is_matrix) {
    p.matrix.n = shape->rows;
    p.matrix.k = shape->cols;
    p.matrix.format = format_of(shape->type, numerics_);
    p.matrix.panel_bytes = panel_bytes(p.matrix.format, p.matrix.k);
    p.bytes = p.matrix.panel_bytes * p.matrix.num_panels();
  } else {
    p.bytes = sizeof(float) * std::uint64_t{shape->cols} * shape->rows;
  }
  bytes_ += align64(p.bytes);
  placements_.push_back(p);
}

std::string WeightsPlan::description() const {
  std::string text;
  std::set<std::pair<TensorType, WeightFormat>> packings;
  for (const Placement& p : placements_) {
    fmt::format_to(std::back_inserter(text), "{} {} {} {}x{} at {} {}", static_cast<int>(p.role), p.layer,
                   traits_of(p.shape.type).name, p.shape.rows, p.shape.cols, p.offset, p.bytes);
    if (p.is_matrix) {
      fmt::format_to(std::back_inserter(text), " as {}", static_cast<int>(p.matrix.format));
      packings.insert({p.shape.type, p.matrix.format});
    }
    text += '\n';
  }
  for (const auto& [type, format] : packings) {
    fmt::format_to(std::back_inserter(text), "{} as {}: {:016x}\n", traits_of(type).name, static_cast<int>(format),
                   pattern_hash(type, format));
  }
  return text;
}

bool WeightsPlan::pack(PackedSink& sink, ThreadPool& pool, const PackProgress& progress) const {
  std::uint64_t done = 0;
  const auto advance = [&](std::uint64_t bytes) {
    done += bytes;
    if (progress) progress(done, bytes_);
  };
  for (const Placement& p : placements_) {
    if (p.is_matrix) {
      if (!pack_matrix(p, sink, pool, advance)) return false;
      continue;
    }
    const SourceTensor source = *checkpoint_.tensor(p.role, p.layer);
    const std::uint64_t padded = align64(p.bytes);
    std::byte* out = sink.room(padded);
    dequantize(source.type, source.data, p.bytes / sizeof(float), reinterpret_cast<float*>(out));
    std::memset(out + p.bytes, 0, padded - p.bytes);
    if (!sink.put()) return false;
    advance(padded);
  }
  return true;
}

bool WeightsPlan::pack_matrix(const Placement& p, PackedSink& sink, ThreadPool& pool,
                              const std::function<void(std::uint64_t)>& done) const {
  OCTAVO_CHECK(p.matrix.panel_bytes % 64 == 0, "panels are 64-byte aligned");
  const SourceTensor source = *checkpoint_.tensor(p.role, p.layer);
  const std::uint64_t panel_rows_bytes = kPanelRows * row_bytes(source);
  const std::uint32_t panels = p.matrix.num_panels();
  const auto most = static_cast<std::uint32_t>(std::max<std::uint64_t>(kPieceBytes / p.matrix.panel_bytes, 1));
  for (std::uint32_t first = 0; first < panels; first += most) {
    const std::uint32_t count = std::min(most, panels - first);
    const std::byte* rows = source.data + first * panel_rows_bytes;
    std::byte* out = sink.room(count * p.matrix.panel_bytes);
    pool.run((count + kPanelsPerTile - 1) / kPanelsPerTile, [&](std::uint32_t tile, std::uint32_t) {
      const FloatMode exact(FloatMode::Kind::kIeee);
      const std::uint32_t begin = tile * kPanelsPerTile;
      pack_panels(source.type, rows, source.rows - first * kPanelRows, source.cols, p.matrix.format, begin,
                  std::min(begin + kPanelsPerTile, count), out);
    });
    if (!sink.put()) return false;
    done(count * p.matrix.panel_bytes);
  }
  return true;
}

Weights WeightsPlan::bind(const std::byte* packed, WeightStorage storage) const {
  Weights weights;
  weights.layers.resize(checkpoint_.spec().layers.size());
  for (const Placement& p : placements_) bind(p, packed + p.offset, weights);
  if (checkpoint_.spec().tied_embeddings) weights.head = weights.embedding;
  weights.storage_ = std::move(storage);
  weights.bytes_ = bytes_;
  return weights;
}

void WeightsPlan::bind(const Placement& p, const std::byte* at, Weights& out) {
  const auto* vector = reinterpret_cast<const float*>(at);
  PackedMatrix matrix = p.matrix;
  matrix.panels = at;
  switch (p.role) {
    case Role::kTokenEmbedding: out.embedding = matrix; return;
    case Role::kOutput: out.head = matrix; return;
    case Role::kOutputNorm: out.output_norm = vector; return;
    default: break;
  }
  LayerWeights& layer = out.layers[p.layer];
  const LayerTensor& tensor = *std::ranges::find(kLayerTensors, p.role, &LayerTensor::role);
  if (p.is_matrix) {
    layer.*tensor.matrix = matrix;
  } else {
    layer.*tensor.vector = vector;
  }
}

}  // namespace octavo
