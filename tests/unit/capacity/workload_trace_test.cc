#include "capacity/workload_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

namespace octavo {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;
using testing::HasSubstr;

Trace parsed(std::string_view text) {
  auto trace = parse_trace("t", text);
  EXPECT_TRUE(trace) << trace.error().message;
  return trace ? std::move(*trace) : Trace{};
}

void expect(const Trace& trace, std::size_t i, std::int64_t micros, std::uint32_t prompt, std::uint32_t output) {
  ASSERT_LT(i, trace.requests.size());
  EXPECT_EQ(trace.requests[i].arrival, microseconds(micros)) << i;
  EXPECT_EQ(trace.requests[i].prompt_tokens, prompt) << i;
  EXPECT_EQ(trace.requests[i].output_tokens, output) << i;
}

TEST(Trace, Azure) {
  const Trace trace = parsed(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:17:03.9799600,4808,10\r\n"
      "2023-11-16 18:17:04.0319569,3180,8\r\n"
      "2023-11-17 00:00:00,110,27\r\n");
  EXPECT_TRUE(trace.timed);
  EXPECT_EQ(trace.requests.size(), 3U);
  expect(trace, 0, 0, 4808, 10);
  expect(trace, 1, 51'996, 3180, 8);  // digits beyond the microsecond are dropped
  expect(trace, 2, (5 * 3600 + 42 * 60 + 56) * 1'000'000LL + 20'040, 110, 27);
}

TEST(Trace, DatesOfOtherYearsHaveOffsetsAndLetters) {
  const Trace trace = parsed(
      "TIMESTAMP,ContextTokens,GeneratedTokens,NumImages\n"
      "2024-02-28T23:59:59.5+00:00,1,2,0\n2024-02-29T00:00:00Z,3,4,0\n2024-02-29 02:00:01+02:00,5,6,1\n");
  expect(trace, 1, 500'000, 3, 4);
  expect(trace, 2, 1'500'000, 5, 6);
}

TEST(Trace, Vidur) {
  const Trace trace = parsed(
      "arrived_at,num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n"
      "0.25,374,44,418,8.5\n1.5,396.0,109,505,3.63\n");
  expect(trace, 0, 0, 374, 44);
  expect(trace, 1, 1'250'000, 396, 109);
}

TEST(Trace, BurstGptWithItsFailures) {
  const Trace trace = parsed(
      "\xEF\xBB\xBFTimestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,,2.1,ChatGPT,472,18,490,Conversation log\n"
      "45,,,ChatGPT,1087,0,1087,Conversation log\n"
      "118,7,1,\"GPT-4, \"\"new\"\"\",417,276,693,API log\n\n");
  EXPECT_EQ(trace.failed, 1U);
  EXPECT_EQ(trace.requests.size(), 2U);
  expect(trace, 1, 113'000'000, 417, 276);
}

TEST(Trace, Mooncake) {
  const Trace trace = parsed(
      R"({"timestamp": 27482, "input_length": 1030, "output_length": 52, "hash_ids": [46, 47, 9]}
{"timestamp": 30535, "input_length": 512, "output_length": 26, "hash_ids": [46]}
{"timestamp": 30535.5, "input_length": 2, "output_length": 0, "hash_ids": []})");
  expect(trace, 0, 0, 1030, 52);
  expect(trace, 1, 3'053'000, 512, 26);
  EXPECT_THAT(trace.requests[0].prefix_ids, ElementsAre(46, 47, 9));
  EXPECT_THAT(trace.requests[1].prefix_ids, ElementsAre(46));
  EXPECT_EQ(trace.failed, 1U);
}

TEST(Trace, PlainLinesOfEitherKind) {
  expect(parsed("prompt,arrival,output\n5,1.5,7\n6,2,8\n"), 1, 500'000, 6, 8);
  expect(parsed("{\"arrival\":1.5,\"prompt\":5,\"output\":7}\n{\"arrival\":2,\"prompt\":6,\"output\":8}"), 1, 500'000,
         6, 8);
  expect(parsed("{\"arrival\":\"2023-11-16 18:17:03\",\"prompt\":5,\"output\":7,\"user\":null}"), 0, 0, 5, 7);
  const Trace untimed = parsed("input_tokens,output_tokens\n5,7\n");
  EXPECT_FALSE(untimed.timed);
  expect(untimed, 0, 0, 5, 7);
}

TEST(Trace, RefusalsNameFileLineAndValue) {
  const std::string header = "arrival,prompt,output\n";
  const std::pair<std::string, const char*> cases[] = {
      {"", "t: is empty"},
      {" \n\r\n", "t: is empty"},
      {header, "t: a header and no request"},
      {header + "1,5,0\n2,6,0\n", "t: all 2 requests failed"},
      {"when,how,what\n1,2,3\n",
       "t:1: no column for the length of the prompt in the header 'when,how,what'; known are"},
      {"1,2,3\n4,5,6\n", "t:1: no column for the length of the prompt"},
      {"arrival,prompt\n1,2\n", "t:1: no column for the length of the output"},
      {"prompt,prompt_tokens,output\n1,2,3\n", "t:1: columns 'prompt' and 'prompt_tokens' say the same"},
      {"[{\"id\": 1}]\n", "t:1: is one JSON list"},
      {header + "1,2\n", "t:2: 2 fields, and the header has 3"},
      {header + "1,2,3,4\n", "t:2: 4 fields"},
      {header + "1,2,3\n\nx,5,6\n", "t:4: arrival 'x' is neither seconds nor a date"},
      {header + "2023-13-16 18:17:03,5,6\n", "t:2: arrival '2023-13-16 18:17:03' is neither"},
      {header + "2023-02-29 18:17:03,5,6\n", "is neither seconds"},
      {header + "2023-02-28 24:17:03,5,6\n", "is neither seconds"},
      {header + "2023-02-28 23:17:03.,5,6\n", "is neither seconds"},
      {header + "2023-02-28 23:17:03+1,5,6\n", "is neither seconds"},
      {header + "-1,5,6\n", "t:2: arrival -1 is not a time from 0"},
      {header + "nan,5,6\n", "t:2: arrival nan is not a time"},
      {header + "inf,5,6\n", "t:2: arrival inf is not a time"},
      {header + "1e300,5,6\n", "is not a time"},
      {header + "5,5,6\n4.5,5,6\n", "t:3: arrives 0.5 s before the request in front of it: sort the trace"},
      {header + "0,5,6\n1e9,5,6\n", "t:3: arrives more than 316224000 s after the first"},
      {header + "1,-5,6\n", "t:2: prompt '-5' is not a number of tokens"},
      {header + "1,5,6.5\n", "t:2: output '6.5' is not a number of tokens"},
      {header + "1,5,\n", "t:2: output '' is not a number of tokens"},
      {header + "1,0,5\n", "t:2: a prompt of 0 tokens"},
      {header + "1,99999999,5\n", "t:2: 99999999 tokens are more than a request may have, 16777216"},
      {header + "1,99999999999999999999999,5\n", "is not a number of tokens"},
      {header + "1,\"5,6\n", "t:2: a quote is opened and not closed"},
      {header + "1,\"5\"x,6\n", "t:2: text between a closing quote and the comma"},
      {"{\"prompt\": 5\n", "t:1: is not a JSON object"},
      {"{\"prompt\": 5, \"output\": 6}\n[1]\n", "t:2: is not a JSON object"},
      {"{\"prompt\": 5}\n", "t:1: no length of the output"},
      {"{\"prompt\": \"long\", \"output\": 6}\n", "t:1: prompt \"long\" is not a number of tokens"},
      {"{\"prompt\": -5, \"output\": 6}\n", "t:1: prompt -5 is not a number of tokens"},
      {"{\"prompt\": [1], \"output\": 6}\n", "t:1: prompt a list is not a number of tokens"},
      {"{\"prompt\": 5, \"input_length\": 5, \"output\": 6}\n", "says what another key says"},
      {"{\"prompt\": 5, \"output\": 6, \"arrival\": true}\n", "t:1: arrival true is not a time"},
      {"{\"prompt\": 5, \"output\": 6, \"hash_ids\": 3}\n", "t:1: hash_ids 3 is not a list"},
      {"{\"prompt\": 5, \"output\": 6, \"hash_ids\": [\"a\"]}\n", "t:1: hash_ids has \"a\", which is no block's id"},
      {"{\"prompt\": 512, \"output\": 6, \"hash_ids\": [1, 2]}\n",
       "2 hash_ids for a prompt of 512 tokens: blocks of 512"},
      {"{\"prompt\": 5, \"output\": 6}\n{\"arrival\": 1, \"prompt\": 5, \"output\": 6}\n",
       "t:2: has an arrival, and lines before have none"},
      {"{\"arrival\": 1, \"prompt\": 5, \"output\": 6}\n{\"prompt\": 5, \"output\": 6}\n", "t:2: has no arrival"},
      {std::string("\0\x01\xff", 3), "t:1: no column for the length of the prompt in the header '?"},
  };
  for (const auto& [text, message] : cases) {
    const auto trace = parse_trace("t", text);
    ASSERT_FALSE(trace) << text;
    EXPECT_EQ(trace.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(trace.error().message, HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace octavo
