#include "capacity/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace octavo {
namespace {

TEST(Lengths, TheCurveGoesThroughItsQuantiles) {
  for (const Quantile& q : kAzureConversationPrompt) EXPECT_EQ(length_at(kAzureConversationPrompt, q.share), q.tokens);
  for (const Quantile& q : kAzureConversationOutput) EXPECT_EQ(length_at(kAzureConversationOutput, q.share), q.tokens);
}

TEST(Lengths, BetweenQuantilesLogarithmsAreInterpolated) {
  constexpr Quantile kCurve[] = {{0, 10}, {.5, 1000}, {1, 1000}};
  EXPECT_EQ(length_at(kCurve, .25), 100U);
  EXPECT_EQ(length_at(kCurve, .75), 1000U);
}

struct Drawn {
  std::vector<std::uint32_t> prompts, outputs;
  double mean_prompt = 0, mean_output = 0;
};

Drawn draw(std::uint64_t seed, std::uint32_t count) {
  Drawn d;
  Random random(seed);
  for (std::uint32_t i = 0; i < count; ++i) {
    const RequestLength r = draw_azure_conversation(random);
    d.prompts.push_back(r.prompt), d.outputs.push_back(r.output);
    d.mean_prompt += static_cast<double>(r.prompt) / count, d.mean_output += static_cast<double>(r.output) / count;
  }
  return d;
}

TEST(Lengths, TheSeedDecides) {
  EXPECT_EQ(draw(7, 100).prompts, draw(7, 100).prompts);
  EXPECT_NE(draw(7, 100).prompts, draw(8, 100).prompts);
}

TEST(Lengths, MeansComeNearTheTraces) {
  const Drawn d = draw(1, 100'000);
  EXPECT_NEAR(d.mean_prompt, 1154.7, .05 * 1154.7);  // of the trace itself, not of its quantiles
  EXPECT_NEAR(d.mean_output, 211.1, .03 * 211.1);
}

TEST(Lengths, BothHumpsOfTheOutputsAreThere) {
  const Drawn d = draw(1, 100'000);
  const auto within = [&](std::uint32_t low, std::uint32_t high) {
    return std::ranges::count_if(d.outputs, [&](std::uint32_t n) { return n >= low && n < high; });
  };
  // Per token of length: dense around 85 to 129 and 395 to 424, thin between.
  EXPECT_GT(within(85, 129) / 44.0, 4 * within(200, 390) / 190.0);
  EXPECT_GT(within(395, 424) / 29.0, 4 * within(200, 390) / 190.0);
}

}  // namespace
}  // namespace octavo
