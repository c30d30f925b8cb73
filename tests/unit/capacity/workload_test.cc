#include "octavo/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace octavo {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

Workload made(const std::string& source, const Arrivals& arrivals) {
  auto workload = make_workload(source, arrivals);
  EXPECT_TRUE(workload) << source << ": " << workload.error().message;
  return workload ? std::move(*workload) : Workload{};
}

Error refused(const std::string& source, const Arrivals& arrivals) {
  const auto workload = make_workload(source, arrivals);
  if (!workload) return workload.error();
  ADD_FAILURE() << source << " was taken: " << workload->name;
  return {};
}

std::string trace_file(const std::string& text) {
  const std::string path = testing::TempDir() + "octavo_workload_test.csv";
  std::ofstream(path) << text;
  return path;
}

struct Lengths {
  double mean = 0;
  std::vector<std::uint32_t> sorted;
  [[nodiscard]] double at(double share) const {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  }
  /// Steadier than a quantile where the curve is steep.
  [[nodiscard]] double share_up_to(double tokens) const {
    const auto end = std::ranges::upper_bound(sorted, tokens);
    return static_cast<double>(end - sorted.begin()) / static_cast<double>(sorted.size());
  }
};
Lengths lengths_of(const Workload& workload, std::uint32_t PlannedRequest::*which) {
  Lengths lengths;
  for (const PlannedRequest& r : workload.requests) {
    lengths.sorted.push_back(r.*which);
    lengths.mean += static_cast<double>(r.*which) / static_cast<double>(workload.requests.size());
  }
  std::ranges::sort(lengths.sorted);
  return lengths;
}

/// Coefficient of variation of the gaps.
double variation(const Workload& workload) {
  double sum = 0, squares = 0;
  const auto& r = workload.requests;
  for (std::size_t i = 1; i < r.size(); ++i) {
    const auto gap = static_cast<double>((r[i].arrival - r[i - 1].arrival).count());
    sum += gap, squares += gap * gap;
  }
  const double n = static_cast<double>(r.size() - 1), mean = sum / n;
  return std::sqrt(squares / n - mean * mean) / mean;
}

struct Published {
  const char* name;
  std::uint32_t PlannedRequest::*which;
  double mean, p50, p99;
};
constexpr auto kPrompt = &PlannedRequest::prompt_tokens, kOutput = &PlannedRequest::output_tokens;

TEST(Profiles, LengthsAreAsPublished) {
  for (const Published& p : {Published{"azure-conversation", kPrompt, 1154.7, 1020, 4142},
                             {"azure-conversation", kOutput, 211.1, 129, 601},
                             {"azure-code", kPrompt, 2047.8, 1469, 7436},
                             {"azure-code", kOutput, 27.9, 13, 252},
                             {"mooncake-conversation", kPrompt, 12035, 6909, 85400},
                             {"mooncake-conversation", kOutput, 342.6, 350, 1118},
                             {"sharegpt", kPrompt, 215, 126, 958},  // quantiles: of the assumed shape
                             {"sharegpt", kOutput, 198, 129, 914}}) {
    const Lengths drawn = lengths_of(made(p.name, {.rate = 1, .requests = 100'000}), p.which);
    SCOPED_TRACE(testing::Message() << p.name << (p.which == kPrompt ? " prompt" : " output"));
    EXPECT_NEAR(drawn.mean, p.mean, .025 * p.mean);
    EXPECT_NEAR(drawn.at(.50), p.p50, .035 * p.p50);
    EXPECT_NEAR(drawn.share_up_to(p.p50), .50, .02);  // of 13 tokens there are many
    EXPECT_NEAR(drawn.share_up_to(p.p99), .99, .006);
  }
}

TEST(Profiles, BothHumpsOfTheConversationsOutputsAreThere) {
  const Lengths drawn = lengths_of(made("azure-conversation", {.requests = 100'000}), kOutput);
  const auto within = [&](std::uint32_t low, std::uint32_t high) {
    return std::ranges::count_if(drawn.sorted, [&](std::uint32_t n) { return n >= low && n < high; });
  };
  // Per token of length: dense around 85 to 129 and 395 to 424, thin between.
  EXPECT_GT(within(85, 129) / 44.0, 4 * within(200, 390) / 190.0);
  EXPECT_GT(within(395, 424) / 29.0, 4 * within(200, 390) / 190.0);
}

TEST(Profiles, ArrivalsHaveTheRateAndTheBurstsOfTheTrace) {
  const Workload conversation = made("azure-conversation", {.requests = 19'366});
  EXPECT_NEAR(std::chrono::duration<double>(conversation.requests.back().arrival).count(), 19'366 / 5.53, 3);
  EXPECT_NEAR(variation(conversation), 1.09, .05);
  EXPECT_NEAR(variation(made("mooncake-conversation", {.requests = 50'000})), 3.0, .15);
  EXPECT_NEAR(variation(made("azure-code", {.requests = 1'000'000})), 13.2, 1);
}

TEST(Profiles, ADayOfTheConversationIsSoManyRequests) {
  const Workload day = made("azure-conversation", {.duration = seconds(86'400)});
  EXPECT_EQ(day.requests.size(), 477'792U);
  EXPECT_LT(day.requests.back().arrival, seconds(86'400));
  EXPECT_GT(day.requests.back().arrival, seconds(86'390));
}

TEST(Profiles, MooncakePrefixesHitAsTheTraceDoes) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Workload workload = made("mooncake-conversation", {.requests = 12'031, .seed = seed});
    EXPECT_NEAR(prefix_hit_share(workload, std::nullopt), .366, .02) << seed;
    EXPECT_NEAR(prefix_hit_share(workload, 50'000), .355, .02) << seed;
    EXPECT_NEAR(prefix_hit_share(workload, 10'000), .211, .02) << seed;
    EXPECT_NEAR(prefix_hit_share(workload, 1'000), .044, .015) << seed;
    EXPECT_EQ(prefix_hit_share(workload, 0), 0) << seed;
    for (const PlannedRequest& r : workload.requests) ASSERT_EQ(r.prefix_ids.size(), (r.prompt_tokens + 511) / 512);
  }
}

TEST(PrefixHits, CountRunsFromTheFront) {
  Workload workload;
  workload.prefix_block_tokens = 10;
  workload.requests = {{{}, 30, 1, {1, 2, 3}}, {{}, 25, 1, {1, 2, 4}}, {{}, 30, 1, {9, 2, 3}}, {{}, 40, 1, {}}};
  EXPECT_DOUBLE_EQ(prefix_hit_share(workload, std::nullopt), 2.0 / 13);
  EXPECT_DOUBLE_EQ(prefix_hit_share(workload, 1), 1.0 / 13);  // of 1, 2, 3 the front stays
}

TEST(Draw, TheSeedDecides) {
  for (const std::string& name : builtin_workloads()) {
    const auto draw = [&](std::uint64_t seed) { return made(name, {.rate = 3, .requests = 200, .seed = seed}); };
    const Workload one = draw(7), same = draw(7), other = draw(8);
    int equal = 0;
    for (std::size_t i = 0; i < 200; ++i) {
      EXPECT_EQ(one.requests[i].arrival, same.requests[i].arrival);
      EXPECT_EQ(one.requests[i].prompt_tokens, same.requests[i].prompt_tokens);
      EXPECT_EQ(one.requests[i].output_tokens, same.requests[i].output_tokens);
      EXPECT_EQ(one.requests[i].prefix_ids, same.requests[i].prefix_ids);
      equal += one.requests[i].prompt_tokens == other.requests[i].prompt_tokens ? 1 : 0;
    }
    EXPECT_LT(equal, 20) << name;
  }
}

/// Figures that any machine must draw: a change here changes what was published with a seed.
TEST(Draw, ASeedMeansTheseRequestsEverywhere) {
  std::uint64_t hash = 14695981039346656037U;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 1099511628211U; };
  for (const std::string& name : builtin_workloads()) {
    for (const PlannedRequest& r : made(name, {.rate = 2.5, .requests = 5000, .seed = 42}).requests) {
      mix(static_cast<std::uint64_t>(r.arrival.count())), mix(r.prompt_tokens), mix(r.output_tokens);
      for (const std::uint64_t id : r.prefix_ids) mix(id);
    }
  }
  EXPECT_EQ(hash, 9201616408798224483U);
}

TEST(Draw, RateAndNumberLeaveTheLengthsAlone) {
  const Workload few = made("azure-code", {.requests = 50}), many = made("azure-code", {.rate = 40, .requests = 500});
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(few.requests[i].prompt_tokens, many.requests[i].prompt_tokens);
    EXPECT_EQ(few.requests[i].output_tokens, many.requests[i].output_tokens);
  }
  const Workload slow = made("azure-code", {.rate = 1, .requests = 500}),
                 fast = made("azure-code", {.rate = 10, .requests = 500});
  for (std::size_t i = 0; i < 500; ++i) {
    EXPECT_NEAR(static_cast<double>(slow.requests[i].arrival.count()),
                10.0 * static_cast<double>(fast.requests[i].arrival.count()), 11);
  }
}

TEST(Draw, BurstinessIsTheShapeOfTheGaps) {
  const std::string source = "prompt:10;output:10";
  EXPECT_NEAR(variation(made(source, {.rate = 5, .requests = 20'000})), 1, .03);
  EXPECT_NEAR(variation(made(source, {.rate = 5, .burstiness = .25, .requests = 20'000})), 2, .1);
  EXPECT_NEAR(variation(made(source, {.rate = 5, .burstiness = 100, .requests = 20'000})), .1, .01);
  EXPECT_TRUE(std::ranges::is_sorted(made(source, {.rate = 5, .burstiness = .001, .requests = 5'000}).requests, {},
                                     &PlannedRequest::arrival));
}

TEST(Draw, AClosedLoopAndAllAtOnceArriveAtZero) {
  const Workload loop = made("sharegpt", {.concurrency = 8, .requests = 20});
  EXPECT_EQ(loop.concurrency, 8U);
  EXPECT_EQ(loop.name, "sharegpt, 8 at a time, 20 requests, seed 1");
  const Workload at_once = made("sharegpt", {.rate = std::numeric_limits<double>::infinity(), .requests = 20});
  EXPECT_EQ(at_once.concurrency, std::nullopt);
  EXPECT_EQ(at_once.name, "sharegpt, all at once, 20 requests, seed 1");
  for (const Workload* workload : {&loop, &at_once}) {
    for (const PlannedRequest& r : workload->requests) EXPECT_EQ(r.arrival, microseconds(0));
  }
}

TEST(Draw, NamesSayWhatWasDrawn) {
  EXPECT_EQ(made("azure-conversation", {}).name,
            "azure-conversation, 5.53/s (gaps Gamma 0.842), 1,000 requests, seed 1");
  EXPECT_EQ(made("prompt:8;output:2", {.rate = 2, .requests = 1, .seed = 3}).name,
            "prompt:8;output:2, 2/s, 1 request, seed 3");
}

TEST(Distribution, EveryFormIsDrawn) {
  const Workload fixed = made("prompt:512;output:128", {.rate = 1, .requests = 10});
  for (const PlannedRequest& r : fixed.requests) {
    EXPECT_EQ(r.prompt_tokens, 512U);
    EXPECT_EQ(r.output_tokens, 128U);
    EXPECT_TRUE(r.prefix_ids.empty());
  }
  const Workload mixed = made("output:lognormal=5.02/0.86;prompt:min=20,p50=1020,p90=2735,p99=4142,max=9000",
                              {.rate = 1, .requests = 100'000});
  const Lengths prompts = lengths_of(mixed, kPrompt), outputs = lengths_of(mixed, kOutput);
  EXPECT_NEAR(prompts.at(.5), 1020, 20);
  EXPECT_NEAR(prompts.at(.9), 2735, 50);
  EXPECT_GE(prompts.sorted.front(), 20U);
  EXPECT_LE(prompts.sorted.back(), 9000U);
  EXPECT_NEAR(outputs.at(.5), std::exp(5.02), 3);
  EXPECT_NEAR(outputs.mean, std::exp(5.02 + .86 * .86 / 2), 5);
}

TEST(Distribution, RefusalsNamePartValueLimitAndRemedy) {
  const std::pair<const char*, const char*> cases[] = {
      {"prompt:p50=100,p90=50;output:1", "--workload: prompt: p90=50 is less than p50=100: quantiles ascend"},
      {"prompt:p90=100,p50=50;output:1", "prompt: p50 stands behind p90"},
      {"prompt:p50=100,p50=100;output:1", "prompt: p50 stands behind p50"},
      {"output:p50=10,p200=20;prompt:1", "output: p200 is not a quantile: write p0 (min), p0.1 to p99.9, or p100"},
      {"output:p50=10,p99.99=20;prompt:1", "p99.99 is not a quantile"},
      {"output:p50=10,p-1=20;prompt:1", "p-1 is not a quantile"},
      {"output:p50=10,pnan=20;prompt:1", "'pnan' is not a quantile"},
      {"output:p50=10,q9=20;prompt:1", "'q9' is not a quantile; write 512, p50=1020"},
      {"prompt:p50=100;output:1", "prompt: one quantile says nothing of the others"},
      {"prompt:p50=x,p90=4;output:1", "p50='x' is not a length of 1 to 16777216 tokens"},
      {"prompt:p50=nan,p90=4;output:1", "p50='nan' is not a length"},
      {"prompt:0;output:1", "prompt: '0' is not a length of 1 to 16777216 tokens"},
      {"prompt:-5;output:1", "prompt: '-5' is not a length"},
      {"prompt:inf;output:1", "prompt: 'inf' is not a length"},
      {"prompt:1e30;output:1", "prompt: '1e30' is not a length"},
      {"prompt:1.5;output:1", "prompt: 1.5 is not a whole number of tokens"},
      {"prompt:;output:1", "prompt: '' is not a length"},
      {"prompt:lognormal=6.63;output:1", "lognormal='6.63' has not the form mean/deviation"},
      {"prompt:lognormal=6/0;output:1", "the logarithm's deviation 0 is not above 0 and at most 5"},
      {"prompt:lognormal=6/nan;output:1", "has not the form"},
      {"prompt:lognormal=60/1;output:1", "lognormal=60/1 is out of bounds"},
      {"prompt:lognormal=-3/1;output:1", "lognormal=-3/1 is out of bounds"},
      {"prompt:1", "output: is missing"},
      {"output:1;", "prompt: is missing"},
      {"prompt:1;prompt:2;output:1", "prompt: is there twice"},
      {"prompt:1;reply:2;output:1", "reply: is not a part: write prompt:...;output:..."},
  };
  for (const auto& [source, message] : cases) {
    const Error error = refused(source, {.rate = 1});
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << source;
    EXPECT_EQ(error.field, "workload");
    EXPECT_THAT(error.message, HasSubstr(message)) << source;
  }
}

TEST(Arrivals, RefusalsNameFlagValueAndLimit) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  const auto message = [](const Arrivals& arrivals) { return refused("azure-conversation", arrivals).message; };
  EXPECT_THAT(message({.rate = 0}), HasSubstr("--rate 0 is not above 0"));
  EXPECT_THAT(message({.rate = -1}), HasSubstr("--rate -1 is not above 0"));
  EXPECT_THAT(message({.rate = kNan}), HasSubstr("--rate nan is not above 0"));
  EXPECT_THAT(message({.rate = 1e9}), HasSubstr("--rate 1000000000 is more than 1000000 a second"));
  EXPECT_THAT(message({.rate = 1e-9}), HasSubstr("--rate 1e-09: 1,000 requests take 1e+12 s"));
  EXPECT_THAT(message({.burstiness = 0}), HasSubstr("--burstiness 0 is not within 0.0001 and 10000"));
  EXPECT_THAT(message({.burstiness = kNan}), HasSubstr("--burstiness nan"));
  EXPECT_THAT(message({.concurrency = 0}), HasSubstr("--concurrency 0 is not within 1 and 1000000"));
  EXPECT_THAT(message({.requests = 0}), HasSubstr("--requests 0 is not within 1 and 10000000"));
  EXPECT_THAT(message({.requests = 10'000'001}), HasSubstr("--requests 10000001"));
  EXPECT_THAT(message({.duration = seconds(0)}), HasSubstr("--duration 0 s is not within 1"));
  EXPECT_THAT(message({.duration = seconds(-4)}), HasSubstr("--duration -4 s"));
  EXPECT_THAT(message({.rate = 1000, .duration = seconds(86'400)}), HasSubstr("makes 86400000 requests"));
  EXPECT_THAT(message({.rate = .01, .duration = seconds(1)}), HasSubstr("makes 0 requests"));
  EXPECT_THAT(message({.rate = 1, .concurrency = 1}), HasSubstr("--concurrency together with --rate"));
  EXPECT_THAT(message({.burstiness = 1, .concurrency = 1}), HasSubstr("--concurrency together with --burstiness"));
  EXPECT_THAT(message({.concurrency = 1, .duration = seconds(1)}), HasSubstr("--concurrency together with --duration"));
  EXPECT_THAT(message({.requests = 1, .duration = seconds(1)}), HasSubstr("--requests together with --duration"));
  EXPECT_THAT(message({.rate = kInf, .burstiness = 1}), HasSubstr("--rate inf together with --burstiness"));
  EXPECT_THAT(message({.rate = kInf, .duration = seconds(1)}), HasSubstr("--rate inf together with --duration"));
  EXPECT_THAT(refused("sharegpt", {}).message, HasSubstr("'sharegpt' has no rate of its own: give --rate or"));
}

TEST(Trace, ArrivalsAreAsRecordedStretchedOrDrawn) {
  const std::string path = trace_file("arrival,prompt,output\n10,5,6\n11,7,8\n11.5,9,10\n14,11,12\n");
  const Workload recorded = made(path, {});
  ASSERT_EQ(recorded.requests.size(), 4U);
  EXPECT_EQ(recorded.name, "octavo_workload_test.csv, 0.75/s as recorded, 4 requests");
  const auto arrivals = [](const Workload& workload) {
    std::vector<std::int64_t> at;
    for (const PlannedRequest& r : workload.requests) at.push_back(r.arrival.count() / 1000);
    return at;
  };
  EXPECT_EQ(arrivals(recorded), (std::vector<std::int64_t>{0, 1000, 1500, 4000}));
  EXPECT_EQ(recorded.requests[1].prompt_tokens, 7U);
  EXPECT_EQ(recorded.requests[1].output_tokens, 8U);

  const Workload faster = made(path, {.rate = 1.5});
  EXPECT_EQ(arrivals(faster), (std::vector<std::int64_t>{0, 500, 750, 2000}));
  EXPECT_THAT(faster.name, HasSubstr("stretched to 1.5/s"));
  EXPECT_EQ(arrivals(made(path, {.requests = 2})), (std::vector<std::int64_t>{0, 1000}));
  EXPECT_EQ(arrivals(made(path, {.duration = seconds(4)})), (std::vector<std::int64_t>{0, 1000, 1500}));
  EXPECT_EQ(arrivals(made(path, {.concurrency = 2})), (std::vector<std::int64_t>{0, 0, 0, 0}));
  const Workload drawn = made(path, {.rate = 100, .burstiness = 1});
  EXPECT_LT(drawn.requests.back().arrival, std::chrono::milliseconds(40));
  EXPECT_EQ(drawn.requests.back().prompt_tokens, 11U);
  EXPECT_THAT(drawn.name, HasSubstr("seed 1"));
  EXPECT_THAT(refused(path, {.requests = 5}).message, AllOf(HasSubstr("--requests 5"), HasSubstr("has 4 requests")));
}

TEST(Trace, WithoutArrivalsARateIsNeeded) {
  const std::string path = trace_file("prompt,output\n5,6\n7,8\n");
  EXPECT_THAT(refused(path, {}).message, HasSubstr("says nothing of arrivals: give --rate or --concurrency"));
  EXPECT_EQ(made(path, {.rate = 2}).name, "octavo_workload_test.csv, 2/s, 2 requests, seed 1");
  EXPECT_EQ(made(path, {.concurrency = 1}).requests.size(), 2U);
}

TEST(Trace, ArrivalsThatAreAllEqualHaveNoRate) {
  const std::string path = trace_file("arrival,prompt,output\n3,5,6\n3,7,8\n");
  EXPECT_EQ(made(path, {}).requests.size(), 2U);
  EXPECT_THAT(refused(path, {.rate = 2}).message, HasSubstr("arrive at once"));
  EXPECT_THAT(refused(path, {.burstiness = 2}).message, HasSubstr("arrive at once"));
  EXPECT_EQ(made(path, {.rate = 2, .burstiness = 1}).requests.size(), 2U);
}

TEST(Trace, WhatIsNoSourceIsToldTheChoices) {
  const Error error = refused("azure-conv", {});
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, AllOf(HasSubstr("'azure-conv' is neither a file"), HasSubstr("mooncake-conversation")));
  EXPECT_THAT(refused(trace_file(""), {}).message, HasSubstr("empty"));
}

}  // namespace
}  // namespace octavo
