#include "load/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/gguf_writer.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_of(std::string_view header, std::size_t data_bytes) {
  testing::Bytes out;
  out.string(header).raw(std::string(data_bytes, 'd').data(), data_bytes);
  return out.text();
}

std::string error_of(const std::string& bytes) {
  const auto file = parse_safetensors("file", std::as_bytes(std::span(bytes)));
  return file ? "(accepted)" : file.error().message;
}

constexpr std::string_view kTwo = R"({"__metadata__": {"format": "pt"},
  "b": {"dtype": "BF16", "shape": [3], "data_offsets": [16, 22]},
  "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}})";

TEST(SafeTensors, ReadsTheTable) {
  const std::string bytes = file_of(kTwo, 22);
  auto file = parse_safetensors("file", std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors.size(), 2U);
  EXPECT_EQ(file->tensors[0].name, "a");
  EXPECT_THAT(file->tensors[0].shape, ElementsAre(2, 2));
  EXPECT_EQ(file->tensors[0].type, TensorType::kF32);
  EXPECT_EQ(file->tensors[1].bytes.size(), 6U);
  EXPECT_EQ(file->header_bytes, 8 + kTwo.size());
}

TEST(SafeTensors, RefusesDamage) {
  const auto one = [](std::string_view dtype, std::string_view shape, std::string_view place) {
    return R"({"a": {"dtype": ")" + std::string(dtype) + R"(", "shape": )" + std::string(shape) +
           R"(, "data_offsets": )" + std::string(place) + "}}";
  };
  EXPECT_THAT(error_of(file_of(one("F32", "[4]", "[0, 16]"), 16)), "(accepted)");
  EXPECT_THAT(error_of(file_of(one("F8_E4M3", "[16]", "[0, 16]"), 16)), "(accepted)");  // refused by whoever needs it
  EXPECT_THAT(error_of(file_of(one("F32", "[4]", "[0, 16]"), 17)), HasSubstr("end at 16 of 17"));
  EXPECT_THAT(error_of(file_of(one("F32", "[4]", "[0, 16]"), 15)), HasSubstr("cut short"));
  EXPECT_THAT(error_of(file_of(one("F32", "[4]", "[1, 17]"), 17)), HasSubstr("begins at 1"));
  EXPECT_THAT(error_of(file_of(one("F32", "[5]", "[0, 16]"), 16)), HasSubstr("does not fill"));
  EXPECT_THAT(error_of(file_of(one("F32", "[4]", "[16, 0]"), 16)), HasSubstr("cut short"));
  EXPECT_THAT(error_of(file_of(one("F3", "[4]", "[0, 16]"), 16)), HasSubstr("unknown dtype 'F3'"));
  EXPECT_THAT(error_of(file_of(one("F32", "[-4]", "[0, 16]"), 16)), HasSubstr("shape"));
  EXPECT_THAT(error_of(file_of(one("F32", "4", "[0, 16]"), 16)), HasSubstr("shape"));
  EXPECT_THAT(error_of(file_of(one("F32", "[4]", "[0]"), 16)), HasSubstr("data_offsets"));
  EXPECT_THAT(error_of(file_of(one("F32", "[4611686018427387905, 4]", "[0, 16]"), 16)), HasSubstr("does not fill"));
  EXPECT_THAT(error_of(file_of(R"({"a": 3})", 0)), HasSubstr("not described by an object"));
  EXPECT_THAT(error_of(file_of(R"({"a": {}})", 0)), HasSubstr("dtype is missing"));
  EXPECT_THAT(error_of(testing::Bytes().number<std::uint64_t>(200'000'000).text()), HasSubstr("limit is 100000000"));
  EXPECT_THAT(error_of(testing::Bytes().number<std::uint64_t>(99).text()), HasSubstr("header needs 99 bytes"));
  EXPECT_THAT(error_of("1234"), HasSubstr("header length"));
  const std::string overlap = R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                                  "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}})";
  EXPECT_THAT(error_of(file_of(overlap, 6)), HasSubstr("tensor b begins at 2"));
}

TEST(SafeTensors, SurvivesTruncationAndEveryBitFlip) {
  const std::string bytes = file_of(kTwo, 22);
  for (std::size_t size = 1; size < bytes.size(); ++size) EXPECT_NE(error_of(bytes.substr(0, size)), "(accepted)");
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    refused += error_of(flipped) != "(accepted)" ? 1 : 0;
  }
  EXPECT_GT(refused, 500U);
}

}  // namespace
}  // namespace octavo
