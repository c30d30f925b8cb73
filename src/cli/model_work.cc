#include "cli/model_work.h"

#include <algorithm>
#include <string>

#include "base/memory.h"

namespace octavo {
namespace {

constexpr std::uint64_t kLargestReadProbe = 512ULL << 20U;  // beyond, the caches no longer matter

}  // namespace

double layer_macs(const ModelInfo& model) {
  double macs = 0;
  for (const LayerInfo& layer : model.layers) {
    const double heads = 2.0 * layer.num_heads + 2.0 * layer.num_kv_heads;  // q and o, k and v
    macs += heads * layer.head_dim * model.width + 3.0 * model.width * model.ffn_width;
  }
  return macs;
}

const PeakRate& linear_peak(const ModelInfo& model, const ProbeReport& peaks, Numerics numerics) {
  const auto largest = std::max_element(model.tensor_types.begin(), model.tensor_types.end(),
                                        [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
  if (numerics == Numerics::kBF16) return peaks.bf16;
  const std::string type = numerics == Numerics::kF32 || largest == model.tensor_types.end() ? "F32" : largest->first;
  return type == "F32" || type == "F16" ? peaks.f32 : type == "BF16" ? peaks.bf16 : peaks.int8;
}

Result<ReadRate> read_rate_at(std::uint64_t bytes, std::uint32_t threads) {
  return probe_read(std::min({bytes, kLargestReadProbe, available_memory_bytes() / 4}), threads);
}

}  // namespace octavo
