#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/float_mode.h"
#include "unit/kernels/kernel_case.h"

namespace octavo {
namespace {

constexpr std::uint32_t kLengths[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 63, 64, 80, 127, 576, 640, 1536, 2051};

/// Values of all sizes, and now and then a special one.
std::vector<float> wild_row(Random& random, std::uint32_t n) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float special[] = {0.0F,    -0.0F,   kInf,   -kInf,   std::numeric_limits<float>::quiet_NaN(),
                           1e-40F,  -1e-40F, 88.72F, -88.72F, -87.3365F,
                           -87.34F, 3e38F,   -3e38F, 1e-30F};
  std::vector<float> row(n);
  for (float& x : row) {
    const std::uint32_t kind = random.below(16);
    x = kind == 0 ? special[random.below(std::size(special))] : random.normal(kind < 8 ? 1.0F : 30.0F);
  }
  return row;
}

/// Runs `op(kernels, row)` on the same rows in each table.
template <class Op>
void expect_same(const std::vector<float>& row, Op op) {
  const FloatMode mode;
  std::vector<float> want;
  for (const Kernels* kernels : tables_under_test()) {
    std::vector<float> got = row;
    got.push_back(12345.0F);  // one past the end is nobody's to touch
    op(*kernels, got.data());
    if (want.empty()) want = got;
    EXPECT_EQ(got.back(), 12345.0F);
    EXPECT_TRUE(same_bits(want, got)) << kernels->name << ", n = " << row.size();
  }
}

class RowOps : public testing::Test {
 protected:
  Random random_;
  testing::ScopedTrace trace_{__FILE__, __LINE__, random_.trace()};
};

TEST_F(RowOps, EveryTableGivesTheBitsOfRef) {
  for (const std::uint32_t n : kLengths) {
    const auto other = random_.row(n);
    const auto tame = random_.row(n, 3.0F);
    const auto wild = wild_row(random_, n);
    expect_same(tame, [&](const Kernels& k, float* x) { k.rms_norm(x, other.data(), 1e-6F, n, x); });
    for (const auto& row : {tame, wild}) {
      expect_same(row, [&](const Kernels& k, float* x) { k.add(x, other.data(), n); });
      expect_same(row, [&](const Kernels& k, float* x) { k.scale(x, 25.298F, n); });
      expect_same(row, [&](const Kernels& k, float* x) { k.soft_cap(x, 30.0F, n); });
      expect_same(row, [&](const Kernels& k, float* x) { k.gated(Activation::kSilu, x, other.data(), n, x); });
      expect_same(row, [&](const Kernels& k, float* x) { k.gated(Activation::kGeluTanh, x, other.data(), n, x); });
      expect_same(row, [&](const Kernels& k, float* x) { k.exp_sum(x, 0.7F, 1.5F, n, x); });
    }
  }
}

TEST_F(RowOps, RopeGivesTheBitsOfRefAndLeavesTheRestAlone) {
  struct Shape {
    std::uint32_t heads, dim, rot;
  };
  for (const auto [heads, dim, rot] : {Shape{3, 64, 64}, Shape{1, 16, 16}, Shape{2, 80, 80}, Shape{4, 80, 32},
                                       Shape{5, 128, 128}, Shape{2, 256, 256}, Shape{2, 24, 20}, Shape{1, 8, 8}}) {
    std::vector<float> inv_freq(rot / 2), table(std::size_t{100} * rot);
    fill_inv_freq(10000.0F, rot, inv_freq.data());
    fill_rope_table(inv_freq.data(), rot / 2, 100, table.data());
    const RopeTable rope{table.data(), rot};
    const auto row = random_.row(std::size_t{heads} * dim);
    const std::uint32_t pos = random_.below(100);
    expect_same(row, [&, heads = heads, dim = dim](const Kernels& k, float* x) { k.rope(x, heads, dim, rope, pos); });

    std::vector<float> turned = row;
    const FloatMode mode;
    tables_under_test()[0]->rope(turned.data(), heads, dim, rope, pos);
    for (std::uint32_t i = rot; i < dim; ++i) EXPECT_EQ(turned[i], row[i]);
    const double angle = static_cast<double>(static_cast<float>(pos) * inv_freq[1]);
    EXPECT_NEAR(turned[1], row[1] * std::cos(angle) - row[1 + rot / 2] * std::sin(angle), 1e-5);
    EXPECT_NEAR(turned[1 + rot / 2], row[1 + rot / 2] * std::cos(angle) + row[1] * std::sin(angle), 1e-5);
  }
}

TEST_F(RowOps, RmsNormIsTheRootMeanSquare) {
  const FloatMode mode;
  const auto x = random_.row(640, 4.0F), gain = random_.row(640);
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * v;
  std::vector<float> out(640);
  for (const Kernels* kernels : tables_under_test()) {
    kernels->rms_norm(x.data(), gain.data(), 1e-5F, 640, out.data());
    for (std::size_t i = 0; i < 640; ++i) {
      const double want = x[i] / std::sqrt(squares / 640 + 1e-5) * gain[i];
      ASSERT_NEAR(out[i], want, 4e-7 * std::abs(want) + 1e-12);
    }
  }
}

}  // namespace
}  // namespace octavo
