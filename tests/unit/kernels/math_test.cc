// Our elementary functions against libm in double. The bounds are measured, a little rounded up.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "base/float_mode.h"
#include "kernels/kernels.h"
#include "kernels/ref/math.h"

namespace octavo {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// |got - want| in units of the last place of want.
double ulps(float got, double want) {
  const float near = std::abs(static_cast<float>(want));
  const double unit = static_cast<double>(std::nextafter(near, kInf)) - static_cast<double>(near);
  return std::abs(static_cast<double>(got) - want) / unit;
}

/// The largest error over every `step`th float from `first` up to `last`, both of one sign.
template <class Ours, class Exact>
double worst(float first, float last, std::uint32_t step, Ours ours, Exact exact) {
  double worst = 0;
  float at = first;
  for (std::uint32_t b = std::bit_cast<std::uint32_t>(first); b <= std::bit_cast<std::uint32_t>(last); b += step) {
    const auto x = std::bit_cast<float>(b);
    const double error = ulps(ours(x), exact(static_cast<double>(x)));
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  testing::Test::RecordProperty("worst_at", std::to_string(at));
  std::printf("  worst %.4f ulp at %a\n", worst, static_cast<double>(at));
  return worst;
}

double exact_exp(double x) { return std::exp(x); }

TEST(Math, ExpIsWithinOneUlp) {
  const FloatMode mode;
  EXPECT_LT(worst(1e-9F, 88.7228F, 499, ref::exp, exact_exp), 1.0);
  EXPECT_LT(worst(-1e-9F, -87.3365F, 499, ref::exp, exact_exp), 1.0);
}

TEST(Math, ExpAtItsEdges) {
  const FloatMode mode;
  EXPECT_EQ(ref::exp(0.0F), 1.0F);
  EXPECT_EQ(ref::exp(-0.0F), 1.0F);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(ref::exp(-kInf)), 0U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(ref::exp(-87.34F)), 0U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(ref::exp(-3e38F)), 0U);
  EXPECT_GE(ref::exp(-87.3365F), std::numeric_limits<float>::min());
  EXPECT_EQ(ref::exp(88.73F), kInf);
  EXPECT_EQ(ref::exp(3e38F), kInf);
  EXPECT_EQ(ref::exp(kInf), kInf);
  EXPECT_TRUE(std::isnan(ref::exp(std::bit_cast<float>(0x7FC001FFU))));
}

TEST(Math, TanhIsWithinThreeUlps) {
  const FloatMode mode;
  const auto exact = [](double x) { return std::tanh(x); };
  EXPECT_LT(worst(1e-30F, 30.0F, 997, ref::tanh, exact), 3.0);
  EXPECT_LT(worst(-1e-30F, -30.0F, 997, ref::tanh, exact), 3.0);
  EXPECT_EQ(ref::tanh(kInf), 1.0F);
  EXPECT_EQ(ref::tanh(-kInf), -1.0F);
  EXPECT_TRUE(std::isnan(ref::tanh(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::signbit(ref::tanh(-0.0F)));
}

TEST(Math, LogIsNearlyCorrectlyRounded) {
  const FloatMode mode;
  const auto exact = [](double x) { return std::log(x); };
  EXPECT_LT(worst(std::numeric_limits<float>::min(), 3e38F, 997, ref::log, exact), 0.501);
  EXPECT_EQ(ref::log(1.0F), 0.0F);
  EXPECT_EQ(ref::log(0.0F), -kInf);
  EXPECT_EQ(ref::log(kInf), kInf);
  EXPECT_TRUE(std::isnan(ref::log(-1.0F)));
}

TEST(Math, SinAndCosAreNearlyCorrectlyRounded) {
  const FloatMode mode;
  const auto exact_sin = [](double x) { return std::sin(x); };
  const auto exact_cos = [](double x) { return std::cos(x); };
  EXPECT_LT(worst(1e-12F, 131072.0F, 499, ref::sin, exact_sin), 0.501);
  EXPECT_LT(worst(1e-12F, 131072.0F, 499, ref::cos, exact_cos), 0.501);
  EXPECT_EQ(ref::sin(0.0F), 0.0F);
  EXPECT_EQ(ref::cos(0.0F), 1.0F);
}

TEST(Math, ActivationsFollowTheirFormulas) {
  const FloatMode mode;
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const auto gelu = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  for (float x = -12; x < 12; x += 1.0F / 1024) {
    ASSERT_NEAR(ref::silu(x), silu(x), 3e-7 * std::max(1.0, std::abs(silu(x)))) << x;
    ASSERT_NEAR(ref::gelu_tanh(x), gelu(x), 3e-7 * std::max(1.0, std::abs(static_cast<double>(x)))) << x;
    ASSERT_NEAR(ref::soft_cap(x, 5.0F), 5 * std::tanh(x / 5.0), 2e-6) << x;
  }
}

TEST(Math, InverseFrequenciesAreCorrectlyRounded) {
  const FloatMode mode;
  for (const float base : {10000.0F, 500000.0F, 1000000.0F, 130000.0F}) {
    for (const std::uint32_t dims : {16U, 64U, 80U, 128U, 256U}) {
      std::vector<float> ours(dims / 2);
      fill_inv_freq(base, dims, ours.data());
      for (std::uint32_t i = 0; i < dims / 2; ++i) {
        const float exponent = static_cast<float>(2 * i) / static_cast<float>(dims);
        EXPECT_EQ(ours[i],
                  1.0F / static_cast<float>(std::pow(static_cast<double>(base), static_cast<double>(exponent))));
      }
    }
  }
}

TEST(Math, RopeTableHoldsCosAndSinOfTheRoundedAngle) {
  const FloatMode mode;
  const float inv_freq[] = {1.0F, 0.1F, 1e-4F};
  std::vector<float> table(5000 * 3 * 2);
  fill_rope_table(inv_freq, 3, 5000, table.data());
  for (std::uint32_t pos = 0; pos < 5000; pos += 7) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      const float angle = static_cast<float>(pos) * inv_freq[i];
      EXPECT_NEAR(table[(pos * 3 + i) * 2], std::cos(static_cast<double>(angle)), 6.1e-8);
      EXPECT_NEAR(table[(pos * 3 + i) * 2 + 1], std::sin(static_cast<double>(angle)), 6.1e-8);
    }
  }
}

}  // namespace
}  // namespace octavo
