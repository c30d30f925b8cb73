// The activation quantiser and the bf16 rounding: edge cases by hand, then every table against `ref` on bytes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/dequantize.h"
#include "unit/kernels/gemm_fixtures.h"

namespace octavo::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

TEST(PrepareInt8, SmallBlocksBecomeZero) {
  for (const Kernels* kernels : linear_tables()) {
    for (const float tiny : {0.0F, -0.0F, kDenormal, 0x1p-126F, 0x1.fffffep-101F}) {
      const Prepared p = prepare(*kernels, ActKind::kInt8, std::vector<float>(32, tiny), 1, 32);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(p.rows.scale[0]), 0U) << kernels->name << tiny;
      for (int i = 0; i < 32; ++i) EXPECT_EQ(p.rows.q[i], 0);
    }
    const Prepared p = prepare(*kernels, ActKind::kInt8, std::vector<float>(32, -0x1p-100F), 1, 32);
    EXPECT_EQ(p.rows.scale[0], 0x1p-100F / 127);
    EXPECT_EQ(p.rows.q[31], -127);
  }
}

TEST(PrepareInt8, LargestValuesReach127) {
  for (const Kernels* kernels : linear_tables()) {
    std::vector<float> x(32, kMax);
    x[1] = -kMax;
    x[2] = kMax / 127 * 3;
    const Prepared p = prepare(*kernels, ActKind::kInt8, x, 1, 32);
    EXPECT_EQ(p.rows.q[0], 127);
    EXPECT_EQ(p.rows.q[1], -127);
    EXPECT_EQ(p.rows.q[2], 3);
    EXPECT_EQ(p.rows.scale[0], kMax / 127);
  }
}

TEST(PrepareInt8, HalvesRoundToEven) {
  for (const Kernels* kernels : linear_tables()) {
    std::vector<float> x(32);
    x[0] = 127;
    x[1] = 2.5F;
    x[2] = 3.5F;
    x[3] = -0.5F;
    x[4] = -1.5F;
    const Prepared p = prepare(*kernels, ActKind::kInt8, x, 1, 32);
    EXPECT_EQ(p.rows.scale[0], 1.0F);
    EXPECT_EQ(p.rows.q[1], 2);
    EXPECT_EQ(p.rows.q[2], 4);
    EXPECT_EQ(p.rows.q[3], 0);
    EXPECT_EQ(p.rows.q[4], -2);
    EXPECT_EQ(p.rows.sum8[0], 127 + 2 - 2);  // k % 4 < 2
    EXPECT_EQ(p.rows.sum8[1], 4);
    EXPECT_EQ(p.rows.sum8[2], 0);
    EXPECT_EQ(p.rows.scaled_sum[0], 131.0F);
  }
}

TEST(PrepareInt8, NotFiniteBlocksGetANanScaleAndLeaveTheRest) {
  for (const Kernels* kernels : linear_tables()) {
    for (const float bad : {kInf, -kInf, kNan, -kNan}) {
      std::vector<float> x(64, 1.0F);
      x[20] = bad;
      const Prepared p = prepare(*kernels, ActKind::kInt8, x, 1, 64);
      EXPECT_TRUE(std::isnan(p.rows.scale[0]));
      EXPECT_TRUE(std::isnan(p.rows.scaled_sum[0]));
      EXPECT_EQ(p.rows.q[0], 0);
      EXPECT_EQ(p.rows.scale[16], 1.0F / 127);
      EXPECT_EQ(p.rows.q[16 * 32], 127);
    }
  }
}

TEST(PrepareBf16, RoundsAsDequantizeSaysInTheContractsOrder) {
  const std::vector<float> x = {1.0F,  -2.0F, 3.0F, 0x1.01p0F, 0x1.03p0F, kDenormal, -kDenormal, kInf,
                                -kInf, kNan,  kMax, -kMax,     0x1p-126F, 0.0F,      -0.0F,      0x1.fep-127F};
  const int order[4] = {2, 0, 3, 1};
  for (const Kernels* kernels : linear_tables()) {
    const Prepared p = prepare(*kernels, ActKind::kBF16, x, 1, 16);
    for (int i = 0; i < 32; ++i) {
      const int from = i / 4 * 4 + order[i % 4];
      EXPECT_EQ(p.rows.bf16[i], from < 16 ? f32_to_bf16(x[from]) : 0) << kernels->name << " place " << i;
    }
  }
}

TEST(Prepare, EveryTableEqualsTheReference) {
  SCOPED_TRACE(seed());
  Rng rng(seed() + 7);
  const Kernels& ref = *linear_tables().front();
  for (const ActKind kind : {ActKind::kInt8, ActKind::kBF16, ActKind::kF32}) {
    for (const std::uint32_t m : {1U, 16U, 19U}) {
      const std::uint32_t k = kind == ActKind::kInt8 ? 576 : 83;
      std::vector<float> x = random_rows(m, k, rng);
      for (float& value : x) {  // every exponent
        if (rng() % 4 == 0) value = std::bit_cast<float>(static_cast<std::uint32_t>(rng()));
        if (kind == ActKind::kInt8 && !std::isfinite(value)) value = 0;
      }
      const Prepared want = prepare(ref, kind, x, m, k);
      for (const Kernels* kernels : linear_tables()) {
        const Prepared got = prepare(*kernels, kind, x, m, k);
        EXPECT_EQ(std::memcmp(got.bytes.data(), want.bytes.data(), want.bytes.size()), 0) << kernels->name << " " << m;
      }
    }
  }
}

TEST(Prepare, RowsInAnySplitGiveTheSameBytes) {
  Rng rng(seed() + 8);
  const std::uint32_t m = 21, k = 96;
  const std::vector<float> x = random_rows(m, k, rng);
  for (const Kernels* kernels : linear_tables()) {
    for (const ActKind kind : {ActKind::kInt8, ActKind::kBF16, ActKind::kF32}) {
      const Prepared want = prepare(*kernels, kind, x, m, k);
      Prepared got{AlignedBuffer(want.bytes.size()), {}};
      got.rows = make_act_rows(kind, m, k, got.bytes.data());
      kernels->prepare_rows(x.data(), k, got.rows, 17, 21);
      kernels->prepare_rows(x.data(), k, got.rows, 0, 5);
      kernels->prepare_rows(x.data(), k, got.rows, 5, 17);
      EXPECT_EQ(std::memcmp(got.bytes.data(), want.bytes.data(), want.bytes.size()), 0) << kernels->name;
    }
  }
}

}  // namespace
}  // namespace octavo::test
