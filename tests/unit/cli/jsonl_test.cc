#include "cli/jsonl.h"

#include <gtest/gtest.h>

#include <sstream>

namespace octavo {
namespace {

TEST(ParseObject, RefusesWhatIsNoObject) {
  for (const char* line : {"", "[]", "1", "{", "{\"a\":1} x", "\"\xff\""}) EXPECT_FALSE(parse_object(line)) << line;
  EXPECT_TRUE(parse_object(R"({"a": [[1]]})"));
}

TEST(ParseObject, BoundsTheDepthButNotBracketsInStrings) {
  const std::string many(100'000, '[');
  EXPECT_FALSE(parse_object("{\"a\": " + many));
  EXPECT_TRUE(parse_object("{\"a\": \"" + many + "\"}"));
  EXPECT_TRUE(parse_object(R"({"a": "\"[[", "b": "\\"})"));
}

TEST(Fields, ReadsWhatIsThereAndLeavesTheRest) {
  const Json object = {{"text", "x"}, {"flag", true}, {"ids", {1, 2}}, {"stop", "s"}, {"seed", 7}, {"none", nullptr}};
  Fields fields(object);
  std::string text;
  bool flag = false;
  std::vector<TokenId> ids;
  std::vector<std::string> stop;
  std::optional<std::uint64_t> seed;
  std::uint32_t none = 5, absent = 6;
  EXPECT_TRUE(fields.read("text", text) && fields.read("flag", flag) && fields.read("ids", ids));
  EXPECT_TRUE(fields.read("stop", stop) && fields.read("seed", seed));
  EXPECT_FALSE(fields.read("none", none) || fields.read("absent", absent));
  EXPECT_TRUE(fields.error());
  EXPECT_EQ(text, "x");
  EXPECT_TRUE(flag);
  EXPECT_EQ(ids, (std::vector<TokenId>{{1}, {2}}));
  EXPECT_EQ(stop, std::vector<std::string>{"s"});
  EXPECT_EQ(seed, 7U);
  EXPECT_EQ(none + absent, 11U);
}

TEST(Fields, TellsTheFirstWrongField) {
  const Json object = {{"top", -1}, {"text", 5}};
  Fields fields(object);
  std::uint32_t top = 3;
  std::string text;
  EXPECT_FALSE(fields.read("top", top));
  EXPECT_FALSE(fields.read("text", text));
  EXPECT_EQ(top, 3U);
  ASSERT_FALSE(fields.error());
  EXPECT_EQ(fields.error().error().field, "top");
  EXPECT_EQ(fields.error().error().message, "field 'top' is -1, expected an integer from 0 to 4294967295");
}

TEST(Fields, RefusesIdsThatAreNoTokens) {
  for (const Json& ids : {Json(5), Json({1, "a"}), Json({1.5}), Json({5'000'000'000})}) {
    const Json object = {{"ids", ids}};
    Fields fields(object);
    std::vector<TokenId> target;
    EXPECT_FALSE(fields.read("ids", target)) << ids;
    EXPECT_FALSE(fields.error());
  }
}

TEST(AnswerLines, OneAnswerPerLineInOrder) {
  std::istringstream in("{\"n\": 1}\nbad\n\n{\"n\": 2}");
  std::ostringstream out;
  answer_lines(in, out, [](const Json& line) -> Result<Json> {
    if (line["n"] == 2) return Error{ErrorCode::kInvalidArgument, "two", ""};
    return Json{{"got", line["n"]}};
  });
  EXPECT_EQ(out.str(),
            "{\"got\":1}\n{\"error\":\"not valid JSON, at byte 1\"}\n{\"error\":\"not valid JSON, at byte 1\"}\n"
            "{\"error\":\"two\"}\n");
}

}  // namespace
}  // namespace octavo
