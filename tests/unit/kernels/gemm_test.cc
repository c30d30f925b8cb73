// Every table that runs here against `ref` on bits, and `ref` against a plain dot product in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/float_mode.h"
#include "kernels/entries.h"
#include "tensor/dequantize.h"
#include "unit/kernels/gemm_fixtures.h"

namespace octavo::test {
namespace {

const Kernels& reference() { return *linear_tables().front(); }

/// Widths that end inside a group, inside a cell (floats), and at whole groups.
std::vector<std::uint32_t> widths_for(TensorType type) {
  switch (traits_of(type).block_size) {
    case 256: return {256, 768};
    case 32: return {32, 256, 544};
    default: return {1, 80, 256, 301};
  }
}

void expect_same(TensorType type, const Packed& w, const std::vector<float>& x, std::uint32_t m, const float* bias) {
  const std::uint32_t k = w.matrix.k;
  const ActKind kind = act_kind_of(w.matrix.format);
  const Prepared rows = prepare(reference(), kind, x, m, k);
  const std::vector<float> want = multiply(reference(), rows.rows, w.matrix, bias);
  for (const Kernels* kernels : linear_tables(kind)) {
    const Prepared own = prepare(*kernels, kind, x, m, k);
    ASSERT_TRUE(same_bits(multiply(*kernels, own.rows, w.matrix, bias), want))
        << kernels->name << " " << traits_of(type).name << " m " << m << " n " << w.matrix.n << " k " << k;
  }
}

TEST(Gemm, EveryTableEqualsTheReference) {
  SCOPED_TRACE(seed());
  Rng rng(seed());
  for (const TensorType type : kAllTypes) {
    for (const std::uint32_t k : widths_for(type)) {
      const std::uint32_t n = 16 * (rng() % 3) + 1 + rng() % 16;
      const Packed w = pack(type, random_blocks(type, std::uint64_t{n} * k, rng), n, k, packed_format_of(type));
      std::vector<float> bias(n);
      for (float& b : bias) b = static_cast<float>(rng() % 1000) / 77;
      for (std::uint32_t m = 1; m <= 17; ++m) {
        expect_same(type, w, random_rows(m, k, rng), m, m % 2 == 0 ? bias.data() : nullptr);
      }
    }
    const std::uint32_t k = traits_of(type).block_size == 256 ? 512 : 288, n = 21;
    const Packed w = pack(type, random_blocks(type, std::uint64_t{n} * k, rng), n, k, packed_format_of(type));
    for (const std::uint32_t m : {31U, 32U, 33U, 64U, 100U, 512U}) {
      expect_same(type, w, random_rows(m, k, rng), m, nullptr);
    }
  }
}

// A wide row, as models have them: the accumulators carry over many groups.
TEST(Gemm, WideRowsEqualTheReference) {
  Rng rng(seed() + 1);
  for (const TensorType type : kAllTypes) {
    const std::uint32_t k = 2048, n = 19;
    const Packed w = pack(type, random_blocks(type, std::uint64_t{n} * k, rng), n, k, packed_format_of(type));
    for (const std::uint32_t m : {1U, 6U}) expect_same(type, w, random_rows(m, k, rng), m, nullptr);
  }
}

// The largest products there are, in every sign pattern that a 16-bit accumulator could trip over.
TEST(Gemm, ExtremeWeightsAndActivationsStayExact) {
  Rng rng(seed() + 2);
  for (const TensorType type : kAllTypes) {
    if (traits_of(type).block_size == 1) continue;
    const std::uint32_t k = 256, n = 16;
    for (const int fill : {0x00, 0xFF, 0x80, 0x7F, 0x77, 0x0F, 0xF0, 0x08, 0x88}) {
      auto blocks = random_blocks(type, std::uint64_t{n} * k, rng);
      fill_codes(type, static_cast<std::byte>(fill), blocks);
      const Packed w = pack(type, blocks, n, k, packed_format_of(type));
      for (int pattern = 0; pattern < 8; ++pattern) {
        const std::uint32_t m = pattern == 7 ? 33 : 5;  // full tiles once
        std::vector<float> x(std::size_t{m} * k);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const bool negative[] = {false,      true,        i % 2 == 0, i % 4 < 2,
                                   i % 4 >= 2, i % 32 < 16, i % 8 < 4,  (rng() & 1) != 0};
          x[i] = negative[pattern] ? -3.0F : 3.0F;
        }
        expect_same(type, w, x, m, nullptr);
      }
    }
  }
}

// Factors and sums that end below 2^-126: every table flushes them, where the contract says.
TEST(Gemm, DenormalsAreFlushedAlike) {
  Rng rng(seed() + 7);
  for (const TensorType type : kAllTypes) {
    const std::uint32_t k = 256, n = 16, m = 41;
    auto blocks = random_blocks(type, std::uint64_t{n} * k, rng);
    if (type == TensorType::kMXFP4) {
      for (std::size_t at = 0; at < blocks.size(); at += 17) blocks[at] = static_cast<std::byte>(rng() % 40);
    }
    const Packed w = pack(type, blocks, n, k, packed_format_of(type));
    std::vector<float> x = random_rows(m, k, rng);
    for (float& value : x) value = std::ldexp(value, -90 - static_cast<int>(rng() % 30));
    expect_same(type, w, x, m, nullptr);
  }
}

TEST(Gemm, AnyPanelSplitGivesTheSameBits) {
  Rng rng(seed() + 3);
  const std::uint32_t n = 103, k = 288, m = 9;
  const Packed w =
      pack(TensorType::kQ5_0, random_blocks(TensorType::kQ5_0, std::uint64_t{n} * k, rng), n, k, WeightFormat::kQ5_0);
  for (const Kernels* kernels : linear_tables()) {
    const Prepared x = prepare(*kernels, ActKind::kInt8, random_rows(m, k, rng), m, k);
    const std::vector<float> whole = multiply(*kernels, x.rows, w.matrix, nullptr);
    std::vector<float> parts(whole.size(), -1.0F);
    const FloatMode mode;
    kernels->gemm(x.rows, w.matrix, nullptr, parts.data(), n, 4, 7);
    EXPECT_EQ(parts[63], -1.0F);  // panel 3 is not ours
    kernels->gemm(x.rows, w.matrix, nullptr, parts.data(), n, 0, 1);
    kernels->gemm(x.rows, w.matrix, nullptr, parts.data(), n, 1, 4);
    EXPECT_TRUE(same_bits(parts, whole)) << kernels->name;
  }
}

TEST(Gemm, LanesPastTheEndAreNotWritten) {
  Rng rng(seed() + 4);
  for (const TensorType type : kAllTypes) {
    const std::uint32_t n = 21, k = 256, m = 3, ldy = 32;
    const Packed w = pack(type, random_blocks(type, std::uint64_t{n} * k, rng), n, k, packed_format_of(type));
    for (const Kernels* kernels : linear_tables()) {
      const Prepared x = prepare(*kernels, act_kind_of(w.matrix.format), random_rows(m, k, rng), m, k);
      std::vector<float> y(std::size_t{m} * ldy, 7.0F);
      const FloatMode mode;
      kernels->gemm(x.rows, w.matrix, nullptr, y.data(), ldy, 0, 2);
      for (std::uint32_t i = 0; i < y.size(); ++i) {
        if (i % ldy >= n) {
          ASSERT_EQ(y[i], 7.0F) << kernels->name << " " << traits_of(type).name;
        }
      }
    }
  }
}

// What rounding may cost: half an activation step per weight, and float rounding.
TEST(Gemm, ReferenceIsNearTheDotProductInDouble) {
  SCOPED_TRACE(seed());
  Rng rng(seed() + 5);
  for (const TensorType type : kAllTypes) {
    const std::uint32_t n = 20, k = 512, m = 4;
    const auto blocks = random_blocks(type, std::uint64_t{n} * k, rng);
    const Packed w = pack(type, blocks, n, k, packed_format_of(type));
    std::vector<float> values(std::size_t{n} * k);
    dequantize(type, blocks.data(), values.size(), values.data());
    const std::vector<float> x = random_rows(m, k, rng);
    const ActKind kind = act_kind_of(w.matrix.format);
    const Prepared rows = prepare(reference(), kind, x, m, k);
    const std::vector<float> y = multiply(reference(), rows.rows, w.matrix, nullptr);
    for (std::uint32_t r = 0; r < m; ++r) {
      for (std::uint32_t c = 0; c < n; ++c) {
        double exact = 0, bound = 0;
        for (std::uint32_t i = 0; i < k; ++i) {
          const double weight = values[c * k + i], a = x[r * k + i];
          double amax = 0;
          for (std::uint32_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j)
            amax = std::max(amax, std::fabs(double{x[r * k + j]}));
          exact += weight * a;
          // Int8: half a step. BF16: 2^-8 of each factor. And the order of k float additions.
          if (kind == ActKind::kInt8) bound += std::fabs(weight) * amax / 127 * 0.5001;
          if (kind == ActKind::kBF16) bound += std::fabs(weight * a) * 0x1p-7;
          bound += 0x1p-18 * std::fabs(weight) * amax;
        }
        ASSERT_NEAR(y[r * n + c], exact, bound + 1e-9) << traits_of(type).name << " row " << r << " output " << c;
      }
    }
  }
}

// Weights 3; inputs 1 and 2 with scale 5 and min 2; 4, -8 and 127 with scale 7 and min 9.
TEST(Gemm, Q2_KAddsHalvesAndMinsAsIntegers) {
  std::vector<std::byte> block(84);
  block[0] = std::byte{5 | 2 << 4};
  block[1] = std::byte{7 | 9 << 4};
  std::fill(block.begin() + 16, block.begin() + 80, std::byte{3});  // inputs 0..31 and 128..159, whose scales are 0
  const std::uint16_t d = f32_to_f16(2), min = f32_to_f16(0.5F);
  std::memcpy(&block[80], &d, 2);
  std::memcpy(&block[82], &min, 2);
  std::vector<float> x(256);
  x[0] = 1;
  x[1] = 2;
  x[16] = 4;
  x[17] = -8;
  x[31] = 127;  // the scale of this block is 1
  const Packed w = pack(TensorType::kQ2_K, block, 1, 256, WeightFormat::kQ2_K);
  const float want = 2.0F * (5 * 9 + 7 * 3 * (-4 + 127)) - 0.5F * (2 * 3 + 9 * (-4 + 127));
  for (const Kernels* kernels : linear_tables()) {
    const Prepared rows = prepare(*kernels, ActKind::kInt8, x, 1, 256);
    EXPECT_EQ(multiply(*kernels, rows.rows, w.matrix, nullptr)[0], want) << kernels->name;
  }
}

// 2^(e - 128): the smallest normal factor, and below it zero.
TEST(Gemm, Mxfp4ExponentsBelowTheNormalNumbersAreZero) {
  for (const auto& [exponent, factor] : {std::pair{0, 0.0F}, {1, 0.0F}, {2, 0x1p-126F}, {128, 1.0F}, {254, 0x1p126F}}) {
    std::vector<std::byte> block(17, std::byte{0x22});  // twice the value 1
    block[0] = static_cast<std::byte>(exponent);
    std::vector<float> x(32);
    x[3] = 127;
    const Packed w = pack(TensorType::kMXFP4, block, 1, 32, WeightFormat::kMXFP4);
    for (const Kernels* kernels : linear_tables()) {
      const Prepared rows = prepare(*kernels, ActKind::kInt8, x, 1, 32);
      EXPECT_EQ(multiply(*kernels, rows.rows, w.matrix, nullptr)[0], factor * 2 * 127) << kernels->name << exponent;
    }
  }
}

TEST(Gemm, HandCases) {
  // Q8_0, d = 0.5, weights 1..32; activations 127 and 0: scale 1, so y is 0.5 * 127 * (1 + 3 + .. + 31), exactly.
  std::vector<std::byte> block(34);
  const std::uint16_t half = f32_to_f16(0.5F);
  std::memcpy(block.data(), &half, 2);
  for (int i = 0; i < 32; ++i) block[2 + i] = static_cast<std::byte>(i + 1);
  std::vector<float> x(32);
  for (int i = 0; i < 32; i += 2) x[i] = 127;
  const float bias = 0.25F;
  const Packed q8 = pack(TensorType::kQ8_0, block, 1, 32, WeightFormat::kQ8_0);
  for (const Kernels* kernels : linear_tables()) {
    const Prepared rows = prepare(*kernels, ActKind::kInt8, x, 1, 32);
    EXPECT_EQ(multiply(*kernels, rows.rows, q8.matrix, &bias)[0], 0.5F * 127 * 256 + 0.25F) << kernels->name;
  }

  // Q4_1, d = 1, m = 2, all nibbles 3, activations 127: (3 + 2) * 127 * 32.
  std::vector<std::byte> q4(20, std::byte{0x33});
  const std::uint16_t d = f32_to_f16(1), min = f32_to_f16(2);
  std::memcpy(q4.data(), &d, 2);
  std::memcpy(q4.data() + 2, &min, 2);
  const Packed q4_1 = pack(TensorType::kQ4_1, q4, 1, 32, WeightFormat::kQ4_1);
  for (const Kernels* kernels : linear_tables()) {
    const Prepared rows = prepare(*kernels, ActKind::kInt8, std::vector<float>(32, 127), 1, 32);
    EXPECT_EQ(multiply(*kernels, rows.rows, q4_1.matrix, nullptr)[0], 5.0F * 127 * 32) << kernels->name;
  }
}

// 2^24 then 32 ones: one chain would lose each one of them, and so does E; O keeps its 16, the next block its 32.
TEST(Gemm, Bf16AddsInTile32Order) {
  std::vector<float> weights(64, 1.0F), x(64, 1.0F);
  weights[0] = 0x1p24F;
  std::vector<std::byte> bf16(128);
  for (int i = 0; i < 64; ++i) {
    const std::uint16_t value = f32_to_bf16(weights[i]);
    std::memcpy(&bf16[2 * i], &value, 2);
  }
  const Packed w = pack(TensorType::kBF16, bf16, 1, 64, WeightFormat::kBF16);
  for (const Kernels* kernels : linear_tables()) {
    const Prepared rows = prepare(*kernels, ActKind::kBF16, x, 1, 64);
    EXPECT_EQ(multiply(*kernels, rows.rows, w.matrix, nullptr)[0], 0x1p24F + 16 + 32) << kernels->name;
  }
}

TEST(Gemm, ARowThatIsNotFiniteGivesNoNumber) {
  Rng rng(seed() + 6);
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    for (const TensorType type : kAllTypes) {
      const std::uint32_t n = 16, k = 256, m = 3;
      const Packed w = pack(type, random_blocks(type, std::uint64_t{n} * k, rng), n, k, packed_format_of(type));
      for (const Kernels* kernels : linear_tables()) {
        std::vector<float> x = random_rows(m, k, rng);
        x[k + 77] = bad;
        const Prepared rows = prepare(*kernels, act_kind_of(w.matrix.format), x, m, k);
        const std::vector<float> y = multiply(*kernels, rows.rows, w.matrix, nullptr);
        for (std::uint32_t i = 0; i < y.size(); ++i) {
          ASSERT_EQ(std::isfinite(y[i]), i / n != 1) << kernels->name << " " << traits_of(type).name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace octavo::test
