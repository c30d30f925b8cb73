// Weights and activations as the kernels read them. See kernels/gemm.h for the byte layout of each format.
#pragma once
#include <cstddef>
#include <cstdint>

namespace octavo {

using Bf16 = std::uint16_t;

/// One for each TensorType. Their numbers are written to files: append only.
enum class WeightFormat : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ2_K,
  kQ3_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4
};

/// What a format multiplies with: block formats int8, BF16 weights bf16, F16 and F32 weights f32.
enum class ActKind : std::uint8_t { kInt8, kBF16, kF32 };

/// N16 panels: 16 outputs x all of K, cells ascending in K; the last panel is padded with zero weights. Owns nothing.
struct PackedMatrix {
  const std::byte* panels = nullptr;  // [ceil(n / 16)] x panel_bytes, 64-byte aligned
  std::uint64_t panel_bytes = 0;
  std::uint32_t n = 0, k = 0;  // outputs, inputs; block formats: k is a multiple of 32 (256 for K-quants and IQ4_XS)
  WeightFormat format = WeightFormat::kF32;

  [[nodiscard]] std::uint32_t num_panels() const { return (n + 15) / 16; }
};

/// Rows prepared once and read by every matrix that takes them. Only the fields of `kind` are set.
struct ActRows {
  ActKind kind = ActKind::kF32;
  std::uint32_t m = 0, k = 0;    // rows, width
  std::int8_t* q = nullptr;      // kInt8: [ceil(m/16)][k/32][16][32], tile-major
  float* scale = nullptr;        // kInt8: [ceil(m/16)][k/32][16]
  std::int16_t* sum8 = nullptr;  // kInt8: [ceil(m/16)][k/32][16][4], sums of q over 8 inputs, see kernels/gemm.h
  float* scaled_sum = nullptr;   // kInt8: [ceil(m/16)][k/32][16], scale * sum of q
  Bf16* bf16 = nullptr;          // kBF16: [m][round_up(k, 32)], order inside 32 as kernels/gemm.h says
  float* f32 = nullptr;          // kF32: [m][k]
};

}  // namespace octavo
