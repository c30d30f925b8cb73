#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <string>
#include <vector>

#include "cli/arrival_options.h"
#include "cli/completion_stream.h"
#include "cli/load_prompts.h"
#include "cli/load_report.h"

namespace octavo {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kToken = R"(data: {"choices":[{"text":"a","finish_reason":null}]})";

std::string stream(std::initializer_list<std::string> lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n\n";
  return text;
}

/// All at once, at 1 ms, or byte by byte.
StreamedAnswer read(const std::string& text, bool by_byte = false) {
  CompletionStream in;
  if (!by_byte) {
    in.add(text, 1);
  } else {
    for (const char c : text) in.add({&c, 1}, 1);
  }
  return in.finish();
}

TEST(CompletionStream, EventsAreTimedAndUsageCounts) {
  CompletionStream in;
  in.add(": ping\r\n\r\ndata: {\"choices\":[{\"text\":\"a\"}],\"usage\":null}\r\n", 10);
  in.add("\r\ndata:{\"choices\":[{\"text\":\"\",\"token_ids\":[7]}]}\n\ndata: {\"cho", 14);
  in.add("ices\":[{\"text\":\"c\",\"finish_reason\":\"length\"}]}\n\n", 20);
  in.add(R"(data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":4}})"
         "\n\ndata: [DONE]\n\n",
         30);
  const StreamedAnswer answer = in.finish();
  EXPECT_EQ(answer.error, "");
  EXPECT_EQ(answer.first_ms, 10);
  EXPECT_EQ(answer.last_ms, 20);
  EXPECT_THAT(answer.gaps_ms, ElementsAre(4, 6));
  EXPECT_EQ(answer.prompt_tokens, 5U);
  EXPECT_EQ(answer.output_tokens, 4U);
}

TEST(CompletionStream, CutsAnywhereMakeNoDifference) {
  const std::string text =
      stream({kToken, kToken, R"(data: {"choices":[{"text":"","finish_reason":"stop"}]})", "data: [DONE]"});
  for (const bool by_byte : {false, true}) {
    const StreamedAnswer answer = read(text, by_byte);
    EXPECT_EQ(answer.error, "");
    EXPECT_EQ(answer.output_tokens, 2U);  // counted here: the event that only ends brings none
    EXPECT_EQ(answer.gaps_ms.size(), 1U);
  }
}

TEST(CompletionStream, WhatIsNoWholeAnswerIsAnError) {
  EXPECT_EQ(read(stream({kToken, kToken})).error, "the stream ended in the middle of the answer");
  EXPECT_EQ(read(stream({"data: [DONE]"})).error, "an answer without a token");
  EXPECT_EQ(read("").error, "the stream ended in the middle of the answer");
  EXPECT_EQ(read("<html>").error, "the stream ended in the middle of the answer");
  EXPECT_EQ(read(stream({kToken, R"(data: {"error":{"message":"out of\nroom"}})", "data: [DONE]"})).error,
            "out of room");
  EXPECT_EQ(read(stream({kToken, R"(data: {"error":"gone"})"})).error, "gone");
  EXPECT_THAT(read(stream({kToken, "data: {nonsense"})).error, HasSubstr("no JSON object: {nonsense"));
  EXPECT_THAT(read(stream({"data: [1]"})).error, HasSubstr("no JSON object"));
  EXPECT_THAT(read("data: " + std::string(std::size_t{17} << 20U, 'x')).error, HasSubstr("more than 16777216 bytes"));
}

TEST(CompletionStream, WrongTypesAreNoCrash) {
  for (const char* event :
       {R"({"choices":3})", R"({"choices":[3]})", R"({"choices":[{"text":3,"token_ids":"x"}]})", R"({"usage":[]})",
        R"({"usage":{"prompt_tokens":-1,"completion_tokens":"x"}})", R"({"error":{"message":{}}})", R"({"error":7})"}) {
    (void)read(stream({std::string("data: ") + event, "data: [DONE]"}));
  }
  EXPECT_EQ(error_message(R"({"error":{"message":"too long"}})"), "too long");
  EXPECT_EQ(error_message("<h1>Bad\nGateway</h1>"), "<h1>Bad Gateway</h1>");
  EXPECT_EQ(error_message(R"({"detail":"no"})"), R"({"detail":"no"})");
}

TimedAnswer answered(double first, std::vector<double> gaps, std::uint64_t tokens) {
  TimedAnswer timed;
  timed.answer.first_ms = first, timed.answer.last_ms = first;
  for (const double gap : gaps) timed.answer.last_ms += gap;
  timed.answer.gaps_ms = std::move(gaps), timed.answer.output_tokens = tokens;
  return timed;
}

TEST(LoadReport, FiguresAreThoseOfWholeAnswers) {
  Workload workload;
  workload.requests = {{{}, 10, 3}, {{}, 20, 1}, {{}, 40, 5}, {{}, 80, 5}};
  LoadRun run;
  run.seconds = 2;
  run.answers = {answered(100, {10, 20}, 3), answered(300, {}, 1), answered(50, {}, 0), answered(200, {30}, 3)};
  run.answers[1].answer.prompt_tokens = 21;  // the server knows better
  run.answers[2].answer.error = "cut";
  run.answers[3].late_ms = 7;
  const LoadReport report = sum_up(run, workload, {.ttft = milliseconds(250), .tpot = milliseconds(15), .e2e = {}});
  EXPECT_EQ(report.completed, 3U);
  EXPECT_EQ(report.failed, 1U);
  EXPECT_EQ(report.errors.at("cut"), 1U);
  EXPECT_EQ(report.input_tokens, 111U);
  EXPECT_EQ(report.output_tokens, 7U);
  EXPECT_EQ(report.short_outputs, 1U);
  EXPECT_EQ(report.good, 2U);
  EXPECT_EQ(report.max_late_ms, 7);
  EXPECT_DOUBLE_EQ(report.ttft.mean, 200);
  EXPECT_DOUBLE_EQ(report.ttft.median, 200);
  EXPECT_DOUBLE_EQ(report.tpot.mean, 15);  // 30 / 2 and 30 / 2
  EXPECT_DOUBLE_EQ(report.itl.mean, 20);
  EXPECT_DOUBLE_EQ(report.e2el.median, 230);
  EXPECT_DOUBLE_EQ(report.per_second(report.completed), 1.5);
  const Json json = to_json(report, true);
  for (const char* key : {"duration", "completed", "failed", "total_input_tokens", "total_output_tokens",
                          "request_throughput", "request_goodput", "output_throughput", "total_token_throughput",
                          "mean_ttft_ms", "median_tpot_ms", "p99_itl_ms", "std_e2el_ms"}) {
    EXPECT_TRUE(json.at(key).is_number()) << key;
  }
  EXPECT_DOUBLE_EQ(json["request_goodput"].get<double>(), 1);
  EXPECT_TRUE(to_json(report, false)["request_goodput"].is_null());
}

TEST(LoadReport, QuantilesAreInterpolated) {
  const Figure figure = figure_of({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(figure.mean, 2.5);
  EXPECT_DOUBLE_EQ(figure.median, 2.5);
  EXPECT_DOUBLE_EQ(figure.p90, 3.7);
  EXPECT_DOUBLE_EQ(figure.p99, 3.97);
  EXPECT_DOUBLE_EQ(figure.deviation, std::sqrt(1.25));
  EXPECT_EQ(figure_of({}).p99, 0);
  EXPECT_EQ(figure_of({5}).p99, 5);
}

TEST(LoadPrompts, SharePrefixesAndNothingElse) {
  Workload workload;
  workload.prefix_block_tokens = 8;
  workload.requests = {{{}, 20, 1, {1, 2, 3}}, {{}, 18, 1, {1, 2, 4}}, {{}, 20, 1}, {{}, 20, 1, {1}}};
  const LoadPrompts prompts(workload, 1, 1000);
  const auto ids = [&](std::size_t i) { return prompts.ids(i); };
  const auto common = [&](std::size_t a, std::size_t b) {
    const auto one = ids(a), other = ids(b);
    return std::ranges::mismatch(one, other).in1 - one.begin();
  };
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(ids(i).size(), workload.requests[i].prompt_tokens);
    EXPECT_EQ(ids(i), ids(i));
    for (const std::uint32_t id : ids(i)) EXPECT_TRUE(id >= 100 && id < 1000) << id;
  }
  EXPECT_EQ(common(0, 1), 16);
  EXPECT_EQ(common(0, 2), 0);
  EXPECT_EQ(common(0, 3), 8);
  EXPECT_NE(ids(0), LoadPrompts(workload, 2, 1000).ids(0));
  const std::string text = prompts.text(1);
  EXPECT_EQ(std::ranges::count(text, ' '), 17);
}

TEST(Goal, IsReadOrRefused) {
  const auto goal = parse_goal("ttft=500,e2e=10000");
  ASSERT_TRUE(goal);
  EXPECT_EQ(goal->ttft, milliseconds(500));
  EXPECT_EQ(goal->tpot, std::nullopt);
  EXPECT_EQ(goal->e2e, milliseconds(10000));
  for (const char* text :
       {"ttft", "ttft=", "ttft=x", "ttft=0", "ttft=-1", "ttft=1.5", "ttft=5,ttft=6", "itl=5", ",ttft=1"}) {
    const auto refused = parse_goal(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_THAT(refused.error().message, HasSubstr("--goal: '")) << text;
  }
}

}  // namespace
}  // namespace octavo
