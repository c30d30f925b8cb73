// Reading a trace, what is wrong with one, and the form that trace viewers take.
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "cli/chrome_trace.h"
#include "cli/trace_file.h"

namespace octavo {
namespace {

const std::string kStep =
    R"({"step":1,"begin_us":100,"run_us":40,"duration_us":50,"rows":1,"decode_rows":0,"prompt_rows":1,"failed_rows":0,)"
    R"("tokens":9,"prompt_tokens":9,"budget":64,"sampled_tokens":1,"admitted":1,"resumed":0,"preempted_recompute":0,)"
    R"("preempted_swap":0,"finished":0,"lookup_tokens":9,"cached_tokens":0,"forked_tokens":0,"recovered_tokens":0,"lost_tokens":0,)"
    R"("running":1,"waiting":0,"blocks_free":9,"blocks_cached":2,"blocks_used":1,"host_used":0,"saves":0,"loads":0,)"
    R"("copies":0,"zeros":1,"batch":[[7,0,0,9,9]]})"
    "\n";
const std::string kTrace =
    R"({"octavo_trace":1,"model":"m"})"
    "\n"
    R"({"request":7,"event":"arrived","at_us":90,"prompt_tokens":9,"max_tokens":4,"choices":1,"priority":0})"
    "\n"
    R"({"request":7,"choice":0,"event":"scheduled","at_us":101,"cached_tokens":0})"
    "\n"
    R"({"request":7,"choice":0,"event":"first_token","at_us":140})"
    "\n" +
    kStep +
    R"({"kv":"stored","seq":1,"group":0,"parent":"00","hashes":["01","02"],"tokens":[1,2]})"
    "\n"
    R"({"request":7,"choice":0,"event":"finished","at_us":190,"reason":"stop","completion_tokens":3,"preemptions":0})"
    "\n"
    R"({"lost":4})"
    "\n"
    R"({"end":true,"lost":4})"
    "\n";

std::string error_of(const std::string& text) {
  std::istringstream in(text);
  const auto read = read_trace(in, "t.jsonl", [](const TraceLine&) {});
  return read ? "" : read.error().message;
}

TEST(TraceFile, EveryLineIsSeen) {
  std::istringstream in(kTrace);
  std::vector<TraceLine> lines;
  const auto read = read_trace(in, "t.jsonl", [&](const TraceLine& line) { lines.push_back(line); });
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(lines.size(), 9U);
  EXPECT_EQ((*lines[0].head)["model"], "m");
  EXPECT_EQ(lines[1].moment->prompt_tokens, 9U);
  EXPECT_EQ(lines[4].step->duration_us, 50);
  EXPECT_EQ(lines[4].step->zeros, 1U);
  EXPECT_EQ(lines[5].kv, "stored");
  EXPECT_EQ(lines[5].kv_blocks, 2U);
  EXPECT_EQ(lines[6].moment->reason, "stop");
  EXPECT_EQ(lines[7].lost, 4U);
  EXPECT_TRUE(lines[8].end);
}

TEST(TraceFile, AWrongLineIsNamedByItsNumber) {
  const std::string head = "{\"octavo_trace\":1}\n";
  EXPECT_EQ(error_of(head), "");
  EXPECT_NE(error_of("").find("t.jsonl"), std::string::npos);
  EXPECT_TRUE(error_of("hello\n").starts_with("t.jsonl:1: not the first line")) << error_of("hello\n");
  EXPECT_TRUE(error_of("{}\n").starts_with("t.jsonl:1: ")) << error_of("{}\n");
  EXPECT_NE(error_of("{\"octavo_trace\":2}\n").find("version 2"), std::string::npos);
  EXPECT_TRUE(error_of(head + kStep + "{\"step\":2}\n").starts_with("t.jsonl:3: ")) << error_of(head + "{\"step\":2}");
  EXPECT_NE(error_of(head + "{\"step\":2}\n").find("'begin_us' is missing"), std::string::npos);
  EXPECT_NE(error_of(head + "{\"step\":-2}\n").find("'step' is -2"), std::string::npos);
  EXPECT_EQ(error_of(head + kStep.substr(0, 60)), "") << "cut off within its last line";
  EXPECT_NE(error_of(head + kStep.substr(0, 60) + "\n").find("t.jsonl:2: "), std::string::npos);
  EXPECT_NE(error_of(head + R"({"request":1,"event":"died","at_us":1,"choice":0})").find("died"), std::string::npos);
  EXPECT_NE(error_of(head + R"({"kv":"lent"})").find("lent"), std::string::npos);
  EXPECT_NE(error_of(head + R"({"what":1})").find("'step'"), std::string::npos);
}

Json chrome(const std::string& trace) {
  std::istringstream in(trace);
  std::ostringstream out;
  ChromeTrace converted(out);
  EXPECT_TRUE(read_trace(in, "t.jsonl", [&](const TraceLine& line) { converted.add(line); }));
  converted.finish();
  return Json::parse(out.str())["traceEvents"];
}

TEST(ChromeTrace, StepsRequestsAndCounters) {
  const Json events = chrome(kTrace);
  int slices = 0, counters = 0, begun = 0;
  for (const Json& event : events) {
    if (event["ph"] == "X") {
      ++slices;
      EXPECT_EQ(event["ts"], 100);
      EXPECT_EQ(event["dur"], 50);
    }
    if (event["ph"] == "C") ++counters;
    if (event["ph"] == "C" && event["name"] == "blocks") {
      EXPECT_EQ(event["args"], (Json{{"used", 1}, {"cached", 2}, {"free", 7}}));
    }
    if (event["ph"] == "b") ++begun;
    if (event["ph"] == "e") --begun;
  }
  EXPECT_EQ(slices, 1);
  EXPECT_EQ(counters, 3);
  EXPECT_EQ(begun, 0) << "every span that begins ends";
}

TEST(ChromeTrace, SpansOfACutTraceEndWithIt) {
  const Json events = chrome(kTrace.substr(0, kTrace.find(R"({"step")")));
  int begun = 0;
  for (const Json& event : events) begun += event["ph"] == "b" ? 1 : event["ph"] == "e" ? -1 : 0;
  EXPECT_EQ(begun, 0);
}

}  // namespace
}  // namespace octavo
