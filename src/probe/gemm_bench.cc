#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/memory.h"
#include "kernels/pack.h"
#include "probe/kernel_parts.h"
#include "tensor/tensor_type.h"

namespace octavo {
namespace {

struct Format {
  const char* name;
  WeightFormat packed;
};

/// Types that pack to a format of their own; the others share BF16's kernel.
std::vector<Format> formats_with_kernels() {
  constexpr TensorType kTypes[] = {TensorType::kQ4_0,  TensorType::kQ4_1, TensorType::kQ5_0,   TensorType::kQ5_1,
                                   TensorType::kQ8_0,  TensorType::kQ2_K, TensorType::kQ3_K,   TensorType::kQ4_K,
                                   TensorType::kQ5_K,  TensorType::kQ6_K, TensorType::kIQ4_NL, TensorType::kIQ4_XS,
                                   TensorType::kMXFP4, TensorType::kBF16, TensorType::kF16,    TensorType::kF32};
  std::vector<Format> out;
  for (const TensorType type : kTypes) {
    const WeightFormat packed = packed_format_of(type);
    if (packed != WeightFormat::kBF16 || type == TensorType::kBF16) out.push_back({traits_of(type).name, packed});
  }
  return out;
}

/// Bytes that are plain numbers, neither tiny nor huge, wherever a format keeps scales or weights.
void fill_plain(AlignedBuffer& buffer) {
  std::uint32_t random = 1;
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    random = random * 1664525U + 1013904223U;
    buffer.data()[i] = static_cast<std::byte>(0x28U + (random >> 30U));
  }
}

const PeakRate& peak_of(ActKind kind, const ProbeReport& peaks) {
  switch (kind) {
    case ActKind::kInt8: return peaks.int8;
    case ActKind::kBF16: return peaks.bf16;
    case ActKind::kF32: break;
  }
  return peaks.f32;
}

}  // namespace

std::vector<std::string> kernel_format_names() {
  std::vector<std::string> names;
  for (const Format& format : formats_with_kernels()) names.emplace_back(format.name);
  return names;
}

Result<std::vector<GemmRow>> KernelBench::gemm() {
  std::vector<GemmRow> out;
  if (config_.rows.empty()) return out;
  const std::uint32_t most = *std::max_element(config_.rows.begin(), config_.rows.end());
  const std::uint32_t n = config_.outputs, k = config_.inputs, panels = (n + 15) / 16;
  AlignedBuffer x(std::uint64_t{most} * k * sizeof(float)), y(std::uint64_t{most} * n * sizeof(float));
  for (std::uint64_t i = 0; i < std::uint64_t{most} * k; ++i) {
    x.as<float>()[i] = static_cast<float>(i * 2654435761U % 2001) * 1e-3F - 1.0F;
  }
  for (const Format& format : formats_with_kernels()) {
    const bool wanted = config_.formats.empty() ||
                        std::find(config_.formats.begin(), config_.formats.end(), format.name) != config_.formats.end();
    if (!wanted) continue;
    const std::uint64_t bytes_each = panel_bytes(format.packed, k);
    AlignedBuffer weights(bytes_each * panels);
    fill_plain(weights);
    const PackedMatrix matrix{weights.data(), bytes_each, n, k, format.packed};
    const ActKind kind = act_kind_of(format.packed);
    for (const std::uint32_t rows : config_.rows) {
      tell(fmt::format("{}, {} rows", format.name, rows));
      const AlignedBuffer storage(act_rows_bytes(kind, rows, k));
      ActRows prepared = make_act_rows(kind, rows, k, storage.data());
      kernels_.prepare_rows(x.as<float>(), k, prepared, 0, rows);
      const std::uint32_t per_tile = std::clamp(panels / (pool_.size() * 8), 1U, 64U);
      const auto multiply = [&] {
        pool_.run((panels + per_tile - 1) / per_tile, [&](std::uint32_t tile, std::uint32_t) {
          kernels_.gemm(prepared, matrix, nullptr, y.as<float>(), n, tile * per_tile,
                        std::min((tile + 1) * per_tile, panels));
        });
      };
      const double ops = 2.0 * rows * n * k;
      OCTAVO_TRY(const KernelSpeed measured,
                 speed(peak_of(kind, peaks_), ops, static_cast<double>(weights.size()), multiply));
      out.push_back({format.name, rows, measured});
    }
  }
  return out;
}

}  // namespace octavo
