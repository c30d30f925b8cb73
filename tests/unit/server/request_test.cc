// Parsing alone: what the endpoints build on.
#include <gtest/gtest.h>

#include "server/field_reader.h"
#include "server/openai_request.h"
#include "server/router.h"
#include "server/utf8.h"

namespace octavo {
namespace {

TEST(FieldReader, NullAndAbsentLeaveTheDefault) {
  const Json body = *parse_json(R"({"a": null, "b": 3.0})");
  FieldReader in(body);
  int a = 7, b = 7, c = 7;
  in.read("a", a, {0, 10});
  in.read("b", b, {0, 10});
  in.read("c", c, {0, 10});
  EXPECT_FALSE(in.error());
  EXPECT_EQ(a, 7);
  EXPECT_EQ(b, 3);
  EXPECT_EQ(c, 7);
}

TEST(FieldReader, TheFirstErrorStays) {
  const Json body = *parse_json(R"({"a": "x", "b": "y"})");
  FieldReader in(body);
  int a = 0, b = 0;
  in.read("b", b, {0, 10});
  in.read("a", a, {0, 10});
  ASSERT_TRUE(in.error());
  EXPECT_EQ(in.error()->message, "b is \"y\", but must be a whole number from 0 to 10.");
  EXPECT_EQ(in.error()->field, "b");
}

TEST(ParseJson, Bounds) {
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']')).ok());
  EXPECT_FALSE(parse_json(std::string(65, '[') + std::string(65, ']')).ok());
  EXPECT_TRUE(parse_json(R"({"a": "[[[{{{\"[[["})").ok());
  EXPECT_FALSE(parse_json("").ok());
  EXPECT_FALSE(parse_json("{\"a\": \"" + std::string(1000000, '\x80') + "\"}").ok());
}

TEST(ParseChat, ArgumentsOfToolCallsBecomeObjects) {
  const Json body = *parse_json(R"({"messages":[{"role":"assistant","content":null,"tool_calls":[
      {"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
      {"id":"2","type":"function","function":{"name":"g","arguments":"not JSON"}}]}],
      "tools":[{"type":"function"}], "reasoning_effort":"low", "chat_template_kwargs":{"enable_thinking":false}})");
  const auto call = parse_chat(body, 100);
  ASSERT_TRUE(call.ok()) << call.error().message;
  const Json& calls = call->messages[0]["tool_calls"];
  EXPECT_EQ(calls[0]["function"]["arguments"], Json({{"x", 1}}));
  EXPECT_EQ(calls[1]["function"]["arguments"], "not JSON");
  EXPECT_EQ(call->tools.size(), 1U);
  EXPECT_EQ(call->template_kwargs, (Json{{"reasoning_effort", "low"}, {"enable_thinking", false}}));
  EXPECT_TRUE(call->add_generation_prompt);
  EXPECT_FALSE(call->add_special_tokens);
}

TEST(ParseChat, ToolChoiceNoneHidesTheTools) {
  const Json body = *parse_json(R"({"messages":[{"role":"user","content":"x"}],"tools":[{}],"tool_choice":"none"})");
  EXPECT_TRUE(parse_chat(body, 100)->tools.is_null());
}

TEST(ParseCompletion, SwitchedOffExtrasAreNoErrors) {
  const Json body = *parse_json(
      R"({"prompt":"x","use_beam_search":false,"guided_json":null,"suffix":"","bad_words":[],"best_of":1})");
  EXPECT_TRUE(parse_completion(body, 100).ok());
}

TEST(Utf8, Validity) {
  EXPECT_TRUE(valid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
  for (const char* wrong : {"\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                            "\xF4\x90\x80\x80", "\xF5", "\xC3\x28"}) {
    EXPECT_FALSE(valid_utf8(wrong));
  }
  EXPECT_EQ(count_characters("a\xC3\xA9\xF0\x9F\x98\x80"), 3U);
}

TEST(SameSecret, ComparesWhole) {
  EXPECT_TRUE(same_secret("key", "key"));
  EXPECT_FALSE(same_secret("key", "kez"));
  EXPECT_FALSE(same_secret("key", "key1"));
  EXPECT_FALSE(same_secret("", "key"));
}

}  // namespace
}  // namespace octavo
