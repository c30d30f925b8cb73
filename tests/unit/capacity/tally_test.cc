#include "capacity/tally.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(TallyTest, QuantilesAreWithinAQuarterPercent) {
  Tally tally;
  for (int i = 1; i <= 10'000; ++i) tally.add(i);
  const Spectrum s = tally.spectrum();
  EXPECT_EQ(s.count, 10'000);
  EXPECT_DOUBLE_EQ(s.mean, 5000.5);
  EXPECT_NEAR(s.p50 / 5000, 1, 0.0026);
  EXPECT_NEAR(s.p99 / 9900, 1, 0.0026);
  EXPECT_EQ(s.max, 10'000);
}

TEST(TallyTest, WeightsCountAsTime) {
  Tally tally;
  tally.add(10, 1);
  tally.add(1000, 3);
  EXPECT_DOUBLE_EQ(tally.mean(), 752.5);
  EXPECT_NEAR(tally.quantile(0.2), 10, 0.03);
  EXPECT_NEAR(tally.quantile(0.5), 1000, 3);
}

TEST(TallyTest, NothingAndZeros) {
  Tally tally;
  EXPECT_EQ(tally.spectrum().p99, 0);
  tally.add(0);
  EXPECT_EQ(tally.spectrum().p99, 0);
  EXPECT_EQ(tally.spectrum().count, 1);
}

}  // namespace
}  // namespace octavo
