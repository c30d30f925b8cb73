#include "tensor/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "base/float_mode.h"

namespace octavo {
namespace {

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

class Dequantize : public ::testing::TestWithParam<TensorType> {};

TEST_P(Dequantize, MatchesTheReferenceBits) {
  const TypeTraits& traits = traits_of(GetParam());
  std::ifstream in(std::string(OCTAVO_SOURCE_DIR "/tests/golden/dequant/") + traits.name + ".bin", std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(file.size(), 4U) << "tools/make_dequant_goldens.py makes it";
  std::uint32_t count = 0;
  std::memcpy(&count, file.data(), sizeof count);
  const std::size_t block_bytes = count / traits.block_size * traits.block_bytes;
  ASSERT_EQ(file.size(), 4 + block_bytes + 4 * std::size_t{count});

  std::vector<float> expected(count), actual(count);
  std::memcpy(expected.data(), file.data() + 4 + block_bytes, 4 * expected.size());
  std::vector<std::byte> unaligned(block_bytes + 1);
  std::memcpy(unaligned.data() + 1, file.data() + 4, block_bytes);
  dequantize(GetParam(), unaligned.data() + 1, count, actual.data());
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(bits_of(actual[i]), bits_of(expected[i])) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(Types, Dequantize,
                         ::testing::Values(TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ4_0,
                                           TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ8_0,
                                           TensorType::kQ2_K, TensorType::kQ3_K, TensorType::kQ4_K, TensorType::kQ5_K,
                                           TensorType::kQ6_K, TensorType::kIQ4_NL, TensorType::kIQ4_XS,
                                           TensorType::kMXFP4),
                         [](const auto& type) { return std::string(traits_of(type.param).name); });

/// The value of f16 bits by the definition of the format.
double f16_value(std::uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 0x3FF;
  const double magnitude = exponent == 31  ? std::numeric_limits<double>::infinity()
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_f16_nan(std::uint16_t half) { return (half & 0x7FFF) > 0x7C00; }

TEST(FloatBits, WidensEveryF16Exactly) {
  const FloatMode flush;  // must not matter
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_f32(half);
    if (is_f16_nan(half)) {
      const std::uint32_t quiet = ((bits & 0x8000) << 16) | 0x7FC00000 | ((bits & 0x3FF) << 13);
      ASSERT_EQ(bits_of(value), quiet);
    } else {
      ASSERT_EQ(static_cast<double>(value), f16_value(half)) << bits;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    }
  }
}

TEST(FloatBits, NarrowsToTheNearestF16) {
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {  // positive finite; the sign is one bit apart
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_f32(half);
    const float next = bits == 0x7BFF ? 65536.0F : f16_to_f32(static_cast<std::uint16_t>(half + 1));
    const float middle = value + (next - value) / 2;  // exact in f32
    const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(f32_to_f16(value), half);
    ASSERT_EQ(f32_to_f16(-value), half | 0x8000);
    ASSERT_EQ(f32_to_f16(middle), even) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), half) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9F)), half + 1) << bits;
  }
  EXPECT_EQ(f32_to_f16(1e30F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_TRUE(is_f16_nan(f32_to_f16(std::bit_cast<float>(0x7F800001U))));
}

TEST(FloatBits, NarrowsToTheNearestBf16) {
  for (std::uint32_t bits = 0x0080; bits < 0x7F80; ++bits) {
    const std::uint32_t middle = (bits << 16) + 0x8000;
    const auto bf16 = static_cast<std::uint16_t>(bits);
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(bf16)), bf16);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), bits + bits % 2);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), bits);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), bits + 1);
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x007FFFFFU)), 0x0000);  // denormals
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x807FFFFFU)), 0x8000);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7F800001U)), 0x7FC0);  // signalling NaN
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0xFFABCDEFU)), 0xFFEB);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::infinity()), 0x7F80);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
}

TEST(TensorTypes, KnowTheirIdsAndNames) {
  EXPECT_EQ(tensor_type_from_id(14), TensorType::kQ6_K);
  EXPECT_FALSE(tensor_type_from_id(16));  // IQ2_XXS: named, not read
  EXPECT_STREQ(ggml_type_name(16), "IQ2_XXS");
  EXPECT_STREQ(ggml_type_name(39), "MXFP4");
  EXPECT_EQ(ggml_type_name(4), nullptr);
  EXPECT_EQ(ggml_type_name(0xFFFFFFFF), nullptr);
  EXPECT_FALSE(tensor_type_from_id(0xFFFFFFFF));
}

}  // namespace
}  // namespace octavo
