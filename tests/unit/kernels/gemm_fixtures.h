// Random matrices and rows for the linear kernels' tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/memory.h"
#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "tensor/tensor_type.h"

namespace octavo::test {

using Rng = std::mt19937;

/// Every table that runs here, `ref` first; by emulation the AVX-VNNI one and, where the build has SIMDe, those for
/// AVX-512. Of the emulated ones only the linear entries are set.
std::vector<const Kernels*> linear_tables();
/// Those that may differ for rows of this kind: only BF16 weights make avx512bf16 another than avx512.
std::vector<const Kernels*> linear_tables(ActKind kind);

/// Every type that a matrix may have.
inline constexpr TensorType kAllTypes[] = {
    TensorType::kF32,  TensorType::kF16,    TensorType::kBF16,   TensorType::kQ4_0,
    TensorType::kQ4_1, TensorType::kQ5_0,   TensorType::kQ5_1,   TensorType::kQ8_0,
    TensorType::kQ4_K, TensorType::kQ5_K,   TensorType::kQ6_K,   TensorType::kQ2_K,
    TensorType::kQ3_K, TensorType::kIQ4_NL, TensorType::kIQ4_XS, TensorType::kMXFP4};

/// `count` elements: any quants, finite scales of both signs and many sizes.
std::vector<std::byte> random_blocks(TensorType type, std::uint64_t count, Rng& rng);
/// Sets every byte but the scales that random_blocks chose: f16 numbers and MXFP4's exponent.
void fill_codes(TensorType type, std::byte fill, std::vector<std::byte>& blocks);
/// Normal values, one in 16 rows much larger, with zeros in between.
std::vector<float> random_rows(std::uint32_t m, std::uint32_t k, Rng& rng);

/// A matrix with its panels.
struct Packed {
  AlignedBuffer bytes;
  PackedMatrix matrix;
};
Packed pack(TensorType type, const std::vector<std::byte>& blocks, std::uint32_t n, std::uint32_t k,
            WeightFormat format);

/// Rows with their storage.
struct Prepared {
  AlignedBuffer bytes;
  ActRows rows;
};
Prepared prepare(const Kernels& kernels, ActKind kind, const std::vector<float>& x, std::uint32_t m, std::uint32_t k);

/// gemm over all panels under the contract's float mode; y is [m, n].
std::vector<float> multiply(const Kernels& kernels, const ActRows& x, const PackedMatrix& w, const float* bias);

/// The seed of this run: OCTAVO_TEST_SEED, or a fixed one; printed on failure by the tests.
std::uint32_t seed();

bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace octavo::test
