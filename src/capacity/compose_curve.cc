// Step costs of a model that was never run here: from its matrices and what single kernels take on the machine.
//
//   weights    each matrix at the measured nanoseconds per weight of its format and as many rows
//   layers     six joined regions each (docs/kernels.md), and what norms, rope and gates move, at the bandwidth of
//   memory attention  keys at the measured nanoseconds per KV head, of the nearest head size and group
// What single kernels cannot tell (small matrices, caches) is not in it: docs/capacity.md says how far off it is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "capacity/step_price.h"
#include "octavo/simulate.h"

namespace octavo {
namespace {

constexpr double kRegionsPerLayer = 6;
constexpr double kStepNs = 20'000, kRowNs = 2'000;  // scheduling, sampling's set-up, delivery

const GemmCost* cost_of(const MachineProfile& profile, const std::string& format) {
  const auto found = std::ranges::find(profile.gemm, format, &GemmCost::format);
  return found == profile.gemm.end() ? nullptr : &*found;
}

/// What the weights multiply as under the numerics asked for.
std::string format_of(const MatrixShape& matrix, Numerics numerics) {
  return numerics == Numerics::kBF16 ? "BF16" : numerics == Numerics::kF32 ? "F32" : matrix.format;
}

/// The measured one of this KV type that is nearest in size; nullptr: none of the type.
const AttentionCost* nearest(const MachineProfile& profile, const std::string& kv_type, std::uint32_t head_dim,
                             std::uint32_t group) {
  const AttentionCost* best = nullptr;
  double best_distance = 0;
  for (const AttentionCost& cost : profile.attention) {
    if (cost.kv_type != kv_type) continue;
    const double distance =
        std::abs(std::log(1.0 * cost.head_dim / head_dim)) + std::abs(std::log(1.0 * cost.group / group));
    if (best == nullptr || distance < best_distance) best = &cost, best_distance = distance;
  }
  return best;
}

}  // namespace

double copy_byte_ns(const MachineProfile& profile) {
  return profile.read_gbytes > 0 ? 2 / profile.read_gbytes : 0;  // read and written
}

Result<> check_runnable(const ModelShape& model) {
  if (model.unsupported.empty()) return Ok{};
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} cannot be served, only its memory is known: {}", model.name, model.unsupported),
               "model"};
}

Result<StepCurve> compose_step_curve(const MachineProfile& profile, const ModelShape& model,
                                     const EngineConfig& config) {
  std::set<std::uint32_t> rows;
  for (const MatrixShape& m : model.matrices) {
    if (m.role == "embedding") continue;
    const std::string format = format_of(m, config.numerics);
    const GemmCost* cost = cost_of(profile, format);
    if (cost == nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the machine profile has no speed of {} products ({}): octavo probe --save measures it",
                               format, m.role),
                   "machine"};
    }
    rows.insert(cost->rows.begin(), cost->rows.end());
  }
  StepCurve out;
  const auto product = [&](const MatrixShape& m, std::uint32_t n) {
    const GemmCost& cost = *cost_of(profile, format_of(m, config.numerics));
    return 1.0 * m.count * static_cast<double>(m.outputs * m.inputs) * on_curve(cost.rows, cost.ns_per_weight, n);
  };
  const double layers = static_cast<double>(model.layers.size());
  double moved = 0;  // floats of a token, all layers
  for (const LayerShape& layer : model.layers) {
    moved += 6.0 * model.width + 2.0 * layer.num_heads * layer.head_dim + 3.0 * model.ffn_width;
  }
  const double regions = layers * kRegionsPerLayer * profile.joined_region_us * 1e3;
  const double move_ns = profile.read_gbytes > 0 ? moved * sizeof(float) / profile.read_gbytes : 0;
  for (const std::uint32_t n : rows) {
    double ns = regions + n * move_ns, head = n * profile.sample_ns * model.vocab_size / 128'256;
    for (const MatrixShape& m : model.matrices) {
      if (m.per_token) ns += product(m, n);
      if (m.role == "head") head += product(m, n);
    }
    out.tokens.push_back(n), out.ns.push_back(ns);
    out.logit_rows.push_back(n), out.logit_ns.push_back(head);
  }
  for (const LayerShape& layer : model.layers) {
    if (layer.num_kv_heads == 0) continue;
    const AttentionCost* cost = nearest(profile, kv_type_name(config.kv_type), layer.head_dim,
                                        std::max(layer.num_heads / layer.num_kv_heads, 1U));
    if (cost == nullptr) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("the machine profile has no attention speed of KV type {}: octavo probe --save measures it",
                      kv_type_name(config.kv_type)),
          "machine"};
    }
    const double size = 1.0 * layer.num_kv_heads * layer.head_dim / cost->head_dim;
    out.single_key_ns += size * cost->single_key_ns;
    out.chunk_key_ns += size * cost->chunk_key_ns;
  }
  out.copy_byte_ns = copy_byte_ns(profile);
  out.row_ns = kRowNs, out.step_ns = kStepNs;
  if (const char* fault = fault_of(out)) return Error{ErrorCode::kInvalidArgument, fault, "machine"};
  return out;
}

}  // namespace octavo
