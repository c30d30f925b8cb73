#include "cli/format.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(HumanBytes, ThreeFiguresAndDecimalUnits) {
  EXPECT_EQ(human_bytes(0), "0 bytes");
  EXPECT_EQ(human_bytes(999), "999 bytes");
  EXPECT_EQ(human_bytes(1000), "1.0 kB");
  EXPECT_EQ(human_bytes(98'362'432), "98.4 MB");
  EXPECT_EQ(human_bytes(253'113'024), "253 MB");
  EXPECT_EQ(human_bytes(999'999'999), "1.0 GB");
}

TEST(ParseBytes, TakesBytesAndUnits) {
  EXPECT_EQ(*parse_bytes("0"), 0U);
  EXPECT_EQ(*parse_bytes("4096"), 4096U);
  EXPECT_EQ(*parse_bytes("4096B"), 4096U);
  EXPECT_EQ(*parse_bytes("2GiB"), 2ULL << 30U);
  EXPECT_EQ(*parse_bytes("2G"), 2ULL << 30U);
  EXPECT_EQ(*parse_bytes("2 GiB"), 2ULL << 30U);
  EXPECT_EQ(*parse_bytes("1.5GB"), 1'500'000'000U);
  EXPECT_EQ(*parse_bytes("64k"), 65536U);
  EXPECT_EQ(*parse_bytes("1TiB"), 1ULL << 40U);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text :
       {"", "B", "GiB", "-1", "1X", "1GiBs", "nan", "inf", "1e300", "9999999TiB", "0x10", "1 ", "1  G"}) {
    const auto bytes = parse_bytes(text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace octavo
