// Packing keeps every value: a row unpacked from panels is the row that dequantize() gives, bit for bit.
#include <gtest/gtest.h>

#include <cstring>

#include "base/float_mode.h"
#include "kernels/entries.h"
#include "kernels/gemm.h"
#include "tensor/dequantize.h"
#include "unit/kernels/gemm_fixtures.h"

namespace octavo::test {
namespace {

std::vector<float> unpack(const PackedMatrix& w, std::uint32_t row) {
  std::vector<float> out(w.k);
  const FloatMode mode;
  ref::unpack_row(w, row, out.data());
  return out;
}

std::uint32_t width_for(TensorType type) { return traits_of(type).block_size == 256 ? 768 : 9 * 32; }

TEST(GemmPack, UnpackedRowsAreTheDequantisedOnes) {
  SCOPED_TRACE(seed());
  Rng rng(seed());
  for (const TensorType type : kAllTypes) {
    SCOPED_TRACE(traits_of(type).name);
    const std::uint32_t n = 37, k = width_for(type);
    const auto blocks = random_blocks(type, std::uint64_t{n} * k, rng);
    std::vector<float> values(std::size_t{n} * k);
    dequantize(type, blocks.data(), values.size(), values.data());
    for (const WeightFormat format : {packed_format_of(type), WeightFormat::kF32, WeightFormat::kBF16}) {
      const Packed packed = pack(type, blocks, n, k, format);
      for (std::uint32_t row = 0; row < n; ++row) {
        std::vector<float> want(values.begin() + row * k, values.begin() + (row + 1) * k);
        if (format == WeightFormat::kBF16) {
          for (float& value : want) value = bf16_to_f32(f32_to_bf16(value));
        }
        ASSERT_TRUE(same_bits(unpack(packed.matrix, row), want)) << "row " << row << " format " << int(format);
      }
    }
  }
}

TEST(GemmPack, AnyPanelSplitGivesTheSameBytes) {
  Rng rng(seed());
  for (const TensorType type : kAllTypes) {
    const std::uint32_t n = 70, k = width_for(type);
    const auto blocks = random_blocks(type, std::uint64_t{n} * k, rng);
    const WeightFormat format = packed_format_of(type);
    const Packed whole = pack(type, blocks, n, k, format);
    AlignedBuffer parts(whole.bytes.size());
    for (const std::uint32_t p : {3U, 0U, 4U, 1U, 2U})
      pack_panels(type, blocks.data(), n, k, format, p, p + 1, parts.data());
    EXPECT_EQ(std::memcmp(whole.bytes.data(), parts.data(), parts.size()), 0) << traits_of(type).name;
  }
}

TEST(GemmPack, FloatsTakeAnyWidth) {
  Rng rng(seed());
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
    for (const std::uint32_t k : {1U, 7U, 33U, 80U}) {
      const auto blocks = random_blocks(type, std::uint64_t{3} * k, rng);
      std::vector<float> values(std::size_t{3} * k);
      dequantize(type, blocks.data(), values.size(), values.data());
      const Packed packed = pack(type, blocks, 3, k, packed_format_of(type));
      EXPECT_EQ(packed.matrix.panel_bytes % 64, 0U);
      EXPECT_TRUE(same_bits(unpack(packed.matrix, 2), {values.begin() + 2 * k, values.end()})) << k;
    }
  }
}

// The layout by hand: Q4_0 with d = 1 and nibbles that name their input.
TEST(GemmPack, Q4_0CellLooksAsTheContractSays) {
  std::vector<std::byte> block(18);
  const std::uint16_t one = f32_to_f16(1.0F);
  std::memcpy(block.data(), &one, 2);
  for (int i = 0; i < 16; ++i) block[2 + i] = static_cast<std::byte>(i | (15 - i) << 4);  // input i: i, i + 16: 15 - i
  const Packed packed = pack(TensorType::kQ4_0, block, 1, 32, WeightFormat::kQ4_0);
  const auto* bytes = packed.bytes.as<std::uint8_t>();
  EXPECT_EQ(packed.matrix.panel_bytes, 64U + 256U);
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(bytes[64 + 64 * j + i], (4 * j + i) | (15 - 4 * j - i) << 4);
  }
  EXPECT_EQ(bytes[64 + 4], 0);  // lane 1 is padding
}

TEST(GemmPack, SizesAddUpToTheFilesBitsPlusPadding) {
  EXPECT_EQ(panel_bytes(WeightFormat::kQ4_0, 576), 18U * 256 + 2 * 256 + 64);  // scales of 8, 8 and 2 cells
  EXPECT_EQ(panel_bytes(WeightFormat::kQ4_K, 256), 16U * 148);                 // 144 in the file: 8-bit scales
  EXPECT_EQ(panel_bytes(WeightFormat::kQ6_K, 256), 320U + 8 * 384);
  EXPECT_EQ(panel_bytes(WeightFormat::kQ2_K, 256), 16U * 84);          // as in the file
  EXPECT_EQ(panel_bytes(WeightFormat::kQ3_K, 256), 320U + 8 * 192);    // 116 for 110
  EXPECT_EQ(panel_bytes(WeightFormat::kIQ4_XS, 256), 192U + 8 * 256);  // 140 for 136
  EXPECT_EQ(panel_bytes(WeightFormat::kIQ4_NL, 256), 16U * 8 * 18);    // as in the file
  EXPECT_EQ(panel_bytes(WeightFormat::kMXFP4, 256), 16U * 8 * 17);     // as in the file
  EXPECT_EQ(panel_bytes(WeightFormat::kBF16, 80), 96U * 32);
  EXPECT_EQ(panel_bytes(WeightFormat::kF16, 7), 256U);
}

}  // namespace
}  // namespace octavo::test
