#include "capacity/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "capacity/random.h"
#include "capacity/workload_profiles.h"

namespace octavo {
namespace {

TEST(Lengths, TheCurveGoesThroughItsQuantiles) {
  for (const WorkloadProfile& profile : workload_profiles()) {
    for (const LengthCurve& curve : {profile.prompt, profile.output}) {
      for (const Quantile& q : curve) EXPECT_EQ(length_at(curve, q.share), std::lround(q.tokens)) << profile.name;
      EXPECT_EQ(curve.front().share, 0);
      EXPECT_EQ(curve.back().share, 1);
      EXPECT_TRUE(std::ranges::is_sorted(curve, {}, &Quantile::share)) << profile.name;
      EXPECT_TRUE(std::ranges::is_sorted(curve, {}, &Quantile::tokens)) << profile.name;
    }
  }
}

TEST(Lengths, BetweenQuantilesLogarithmsAreInterpolated) {
  const LengthCurve curve = {{0, 10}, {.5, 1000}, {1, 1000}};
  EXPECT_EQ(length_at(curve, .25), 100U);
  EXPECT_EQ(length_at(curve, .75), 1000U);
}

TEST(Lengths, ALogNormalHasItsMedianAndDeviations) {
  const LengthCurve curve = lognormal_curve(std::log(1000), .5, 1, 1e6);
  EXPECT_EQ(length_at(curve, .5), 1000U);
  EXPECT_NEAR(length_at(curve, normal_share(1)), 1000 * std::exp(.5), 3);
  EXPECT_NEAR(length_at(curve, normal_share(-2)), 1000 * std::exp(-1), 3);
  const LengthCurve cut = lognormal_curve(std::log(1000), .5, 900, 1100);
  EXPECT_EQ(length_at(cut, 0), 900U);
  EXPECT_EQ(length_at(cut, 1), 1100U);
}

TEST(Lengths, TailsOfQuantilesGoOnAsALogNormal) {
  const LengthCurve whole = lognormal_curve(std::log(1000), .5, 1, 1e6);
  std::vector<Quantile> known;
  for (const double share : {.25, .5, .75}) known.push_back({share, static_cast<double>(length_at(whole, share))});
  const LengthCurve curve = quantile_curve(known, 1e6);
  for (const double share : {.01, .1, .25, .6, .9, .99}) {
    EXPECT_NEAR(length_at(curve, share), length_at(whole, share), .02 * length_at(whole, share)) << share;
  }
}

TEST(Lengths, OneQuantileAtAnEndIsEnough) {
  const LengthCurve curve = quantile_curve({{0, 5}, {1, 500}}, 1e6);
  EXPECT_EQ(length_at(curve, 0), 5U);
  EXPECT_EQ(length_at(curve, .5), 50U);
  EXPECT_EQ(length_at(curve, 1), 500U);
  const LengthCurve upper = quantile_curve({{0, 5}, {.5, 500}}, 1000);
  EXPECT_EQ(length_at(upper, 1), 1000U);  // the tail stops at the limit
  EXPECT_EQ(length_at(quantile_curve({{.999, 5}, {1, 500}}, 1000), 0), 1U);
}

TEST(Random, SequenceOfASeedIsKnown) {
  Random random(1);
  EXPECT_EQ(random.next(), 0x910A2DEC89025CC1U);
  EXPECT_EQ(random.next(), 0xBEEB8DA1658EEC67U);
}

TEST(Random, FunctionsAreThoseOfTheLibrary) {
  for (double x = -50; x < 50; x += .37) EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 1e-14) << x;
  for (double x = 1e-9; x < 1e9; x *= 1.37)
    EXPECT_NEAR(portable_log(x), std::log(x), 4e-15 * (1 + std::abs(std::log(x)))) << x;
  for (double z = -5; z < 5; z += .31) {
    EXPECT_NEAR(normal_share(z), .5 * std::erfc(-z / std::sqrt(2)), 1e-14) << z;
    EXPECT_NEAR(normal_quantile(normal_share(z)), z, 1e-8) << z;
  }
  EXPECT_EQ(portable_exp(-2000), 0);
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_log(1), 0);
}

TEST(Random, GammaHasItsMeanAndDeviation) {
  for (const double shape : {.05, .3, 1.0, 2.5, 30.0}) {
    Random random(5);
    constexpr int kCount = 200'000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kCount; ++i) {
      const double x = random.gamma(shape);
      sum += x, squares += x * x;
    }
    const double mean = sum / kCount, deviation = std::sqrt(squares / kCount - mean * mean);
    EXPECT_NEAR(mean / shape, 1, .03) << shape;
    EXPECT_NEAR(deviation / std::sqrt(shape), 1, .03) << shape;
  }
}

}  // namespace
}  // namespace octavo
