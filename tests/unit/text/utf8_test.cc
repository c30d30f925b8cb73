#include "text/utf8.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(Utf8, EveryCodePointReadsBackAsItself) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    const Utf8Unit unit = read_utf8(text, 0);
    ASSERT_TRUE(unit.valid) << std::hex << static_cast<unsigned>(c);
    ASSERT_EQ(unit.code_point, c);
    ASSERT_EQ(unit.length, text.size());
  }
}

TEST(Utf8, OneReplacementPerMaximalSubpart) {
  EXPECT_EQ(replace_invalid_utf8("plain"), "plain");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), "\uFFFD");              // a start without its end
  EXPECT_EQ(replace_invalid_utf8("\xC0\x80"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x82"                              // cut by a letter
                                 "b\x80"),
            "a\uFFFDb\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // above U+10FFFF
}

TEST(Utf8, TellsAnUnfinishedCharacterFromAWrongOne) {
  EXPECT_TRUE(read_utf8("\xE2\x82", 0).unfinished);
  EXPECT_FALSE(read_utf8("\xE2\x28", 0).unfinished);
  EXPECT_FALSE(read_utf8("\xFF", 0).unfinished);
}

}  // namespace
}  // namespace octavo
