// What a refused client is told about when to come back.
#include "server/finish_rate.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(FinishRate, MeanTimePerRequestRoundedUp) {
  FinishRate rate;
  FinishRate::Clock::time_point now{seconds(1000)};
  EXPECT_EQ(rate.retry_after_seconds(now), 1U) << "nothing is known";
  for (int i = 0; i < 10; ++i) rate.finished(now += milliseconds(2500));
  EXPECT_EQ(rate.retry_after_seconds(now), 3U) << "22.5 s for 10";
  EXPECT_EQ(rate.retry_after_seconds(now + seconds(30)), 6U) << "a stall shows";
  EXPECT_EQ(rate.retry_after_seconds(now + seconds(100000)), FinishRate::kMostSeconds);
  for (std::size_t i = 0; i < FinishRate::kRequests; ++i) rate.finished(now += milliseconds(10));
  EXPECT_EQ(rate.retry_after_seconds(now), 1U) << "never less, and what is long ago does not count";
}

}  // namespace
}  // namespace octavo
