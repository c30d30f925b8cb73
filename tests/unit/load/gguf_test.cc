#include "load/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <random>

#include "support/gguf_writer.h"

namespace octavo {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::TempFile;

constexpr std::uint32_t kF32 = 0, kQ4_0 = 2;

/// A file with every kind of value and two tensors.
GgufWriter small_file() {
  GgufWriter writer;
  writer.set("general.architecture", "llama")
      .set("a.bool", true)
      .set("a.u8", std::uint8_t{200})
      .set("a.i64", std::int64_t{-5})
      .set("a.u64", std::uint64_t{1} << 40)
      .set("a.f32", 0.5F)
      .set("a.f64", 0.25)
      .set("a.strings", std::vector<std::string>{"one", "", "three"})
      .set("a.numbers", std::vector<std::int32_t>{1, 2, 3})
      .set("a.floats", std::vector<float>{1.5F, -2.0F});
  writer.add_f32("x", {2, 3}, {1, 2, 3, 4, 5, 6});
  writer.add_tensor("y", kQ4_0, {32}, std::string(18, '\1'));
  return writer;
}

Result<GgufFile> open_bytes(const std::string& bytes) {
  const TempFile file(bytes);  // the map outlives the name
  return GgufFile::open(file.path());
}

std::string error_of(const std::string& bytes, ErrorCode code = ErrorCode::kCorrupt) {
  const auto file = open_bytes(bytes);
  if (file) return "(opened)";
  EXPECT_EQ(file.error().code, code) << file.error().message;
  return file.error().message;
}

TEST(Gguf, ReadsTypedMetadata) {
  auto file = open_bytes(small_file().bytes());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 3U);
  EXPECT_EQ(*file->require<std::string_view>("general.architecture"), "llama");
  EXPECT_EQ(*file->require<bool>("a.bool"), true);
  EXPECT_EQ(*file->require<std::uint32_t>("a.u8"), 200U);
  EXPECT_EQ(*file->require<std::int32_t>("a.i64"), -5);
  EXPECT_EQ(*file->require<std::uint64_t>("a.u64"), std::uint64_t{1} << 40);
  EXPECT_EQ(*file->require<float>("a.f32"), 0.5F);
  EXPECT_EQ(*file->require<float>("a.f64"), 0.25F);
  EXPECT_THAT(*file->require<std::vector<std::string_view>>("a.strings"), ElementsAre("one", "", "three"));
  EXPECT_THAT(*file->require<std::vector<std::uint32_t>>("a.numbers"), ElementsAre(1, 2, 3));
  EXPECT_THAT(*file->require<std::vector<float>>("a.floats"), ElementsAre(1.5F, -2.0F));
  EXPECT_EQ(*file->get_or<std::uint32_t>("absent", 7), 7U);
  EXPECT_FALSE(file->get<bool>("absent")->has_value());
}

TEST(Gguf, NamesTheKeyThatIsMissingOrOfTheWrongKind) {
  auto file = open_bytes(small_file().bytes());
  ASSERT_TRUE(file);
  EXPECT_THAT(file->require<std::uint32_t>("absent").error().message, HasSubstr("absent is missing"));
  EXPECT_THAT(file->get<std::uint32_t>("a.u64").error().message, HasSubstr("a.u64 is u64"));  // too large
  EXPECT_THAT(file->get<std::uint32_t>("a.i64").error().message, HasSubstr("a.i64"));         // negative
  EXPECT_THAT(file->get<float>("a.strings").error().message, HasSubstr("array of 3 x string"));
  EXPECT_EQ(file->get<bool>("a.f32").error().field, "a.f32");
}

TEST(Gguf, GivesOneNumberPerLayerFromAScalarOrAnArray) {
  auto file = open_bytes(small_file().bytes());
  ASSERT_TRUE(file);
  EXPECT_THAT(**file->get_per_layer("a.u8", 2), ElementsAre(200, 200));
  EXPECT_THAT(**file->get_per_layer("a.numbers", 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(file->get_per_layer("a.numbers", 4).error().message, HasSubstr("3 entries, the model has 4 layers"));
}

TEST(Gguf, FindsTensors) {
  auto file = open_bytes(small_file().bytes());
  ASSERT_TRUE(file);
  ASSERT_EQ(file->tensors().size(), 2U);
  const GgufTensor* x = file->find_tensor("x");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(x->type, TensorType::kF32);
  EXPECT_THAT(x->dims, ElementsAre(2, 3));
  ASSERT_EQ(x->bytes.size(), 24U);
  float last = 0;
  std::memcpy(&last, x->bytes.data() + 20, 4);
  EXPECT_EQ(last, 6.0F);
  EXPECT_EQ(file->find_tensor("y")->bytes.size(), 18U);
  EXPECT_EQ(file->find_tensor("z"), nullptr);
}

TEST(Gguf, OpensVocabularyOnlyFilesAndVersion2) {
  auto file = open_bytes(GgufWriter(2).set("general.architecture", "llama").bytes());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 2U);
  EXPECT_TRUE(file->tensors().empty());
}

TEST(Gguf, RefusesOtherVersionsByName) {
  EXPECT_THAT(error_of(GgufWriter(1).bytes(), ErrorCode::kUnsupported), HasSubstr("version 1"));
  EXPECT_THAT(error_of(GgufWriter(4).bytes(), ErrorCode::kUnsupported), HasSubstr("version 4"));
  EXPECT_THAT(error_of(GgufWriter(0x03000000).bytes(), ErrorCode::kUnsupported), HasSubstr("big-endian"));
  EXPECT_THAT(error_of("PK\3\4 and more"), HasSubstr("not a GGUF file"));
}

TEST(Gguf, RefusesHostileCounts) {
  const auto head = [](std::uint64_t tensors, std::uint64_t metadata) {
    return Bytes().raw("GGUF", 4).number<std::uint32_t>(3).number(tensors).number(metadata);
  };
  constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(error_of(head(kHuge, 0).text()), HasSubstr("tensor count"));
  EXPECT_THAT(error_of(head(0, kHuge).text()), HasSubstr("metadata count"));
  EXPECT_THAT(error_of(head(0, 1).number(kHuge).raw("0123456789", 10).text()), HasSubstr("metadata key needs"));

  const auto array = [](GgufValueType element, std::uint64_t count) {
    return GgufWriter().set_raw("k", Bytes().number(GgufValueType::kArray).number(element).number(count)).bytes();
  };
  for (const auto element : {GgufValueType::kU8, GgufValueType::kF64, GgufValueType::kString, GgufValueType::kArray}) {
    EXPECT_THAT(error_of(array(element, kHuge / 8 + 1)), HasSubstr("array length"));
  }
  EXPECT_THAT(error_of(GgufWriter().set_raw("k", Bytes().number<std::uint32_t>(13)).bytes()), HasSubstr("type 13"));
}

TEST(Gguf, BoundsTheDepthOfArrays) {
  const auto nested = [](int depth) {
    Bytes value;
    value.number(GgufValueType::kArray);
    for (int i = 1; i < depth; ++i) value.number(GgufValueType::kArray).number<std::uint64_t>(1);
    value.number(GgufValueType::kU8).number<std::uint64_t>(1).number<std::uint8_t>(9);
    return GgufWriter().set_raw("deep", value).bytes();
  };
  EXPECT_TRUE(open_bytes(nested(4)));
  EXPECT_THAT(error_of(nested(5)), HasSubstr("nest deeper"));
  EXPECT_THAT(error_of(nested(5000)), HasSubstr("nest deeper"));
}

TEST(Gguf, RefusesDamagedTables) {
  const auto with = [](std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dims) {
    return small_file().add_tensor(name, type, dims, "0123").bytes();
  };
  constexpr auto kLarge = std::uint64_t{1} << 62;
  EXPECT_THAT(error_of(with("x", kF32, {1})), HasSubstr("tensor x occurs twice"));
  EXPECT_THAT(error_of(with("", kF32, {1})), HasSubstr("tensor name"));
  EXPECT_THAT(error_of(with(std::string(65, 'n'), kF32, {1})), HasSubstr("65 bytes"));
  EXPECT_THAT(error_of(with("z", kF32, {})), HasSubstr("0 dimensions"));
  EXPECT_THAT(error_of(with("z", kF32, {1, 1, 1, 1, 1})), HasSubstr("5 dimensions"));
  EXPECT_THAT(error_of(with("z", kF32, {1, 0})), HasSubstr("dimension of 0"));
  EXPECT_THAT(error_of(with("z", kF32, {kLarge, kLarge})), HasSubstr("exceeds 64 bits"));
  EXPECT_THAT(error_of(with("z", kF32, {kLarge})), HasSubstr("exceeds 64 bits"));
  EXPECT_THAT(error_of(with("z", kF32, {2})), HasSubstr("tensor z takes 8 bytes"));
  EXPECT_THAT(error_of(with("z", kQ4_0, {33})), HasSubstr("block of 32"));
  EXPECT_THAT(error_of(small_file().set("a.bool", false).bytes()), HasSubstr("key a.bool occurs twice"));
  EXPECT_THAT(error_of(small_file().set("", false).bytes()), HasSubstr("metadata key"));
  EXPECT_THAT(error_of(small_file().set("general.alignment", 0U).bytes()), HasSubstr("alignment"));
  EXPECT_THAT(error_of(small_file().set("general.alignment", 48U).bytes()), HasSubstr("alignment"));
  EXPECT_THAT(error_of(small_file().set("general.alignment", 4U).bytes()), HasSubstr("alignment"));
  EXPECT_THAT(error_of(small_file().set("general.alignment", 64U).bytes()), HasSubstr("not a multiple of 64"));
}

TEST(Gguf, NamesUnreadTensorTypes) {
  const auto with = [](std::uint32_t type) {
    return error_of(small_file().add_tensor("z", type, {256}, std::string(66, 'x')).bytes(), ErrorCode::kUnsupported);
  };
  EXPECT_THAT(with(16), ::testing::AllOf(HasSubstr("tensor z has type IQ2_XXS"), HasSubstr("Q4_K")));
  EXPECT_THAT(with(4), HasSubstr("unknown (id 4)"));
  EXPECT_THAT(with(0xFFFFFFFF), HasSubstr("unknown (id 4294967295)"));
}

TEST(Gguf, RefusesOverlappingTensors) {
  std::string bytes = small_file().bytes();
  const std::size_t y = bytes.find("y", bytes.find("x") + 1);  // the table's entry: name, n_dims, dim, type, offset
  const std::uint64_t zero = 0;
  std::memcpy(bytes.data() + y + 1 + 4 + 8 + 4, &zero, sizeof zero);
  EXPECT_THAT(error_of(bytes), HasSubstr("overlap"));
}

TEST(Gguf, SurvivesTruncationAtEveryByte) {
  const std::string bytes = small_file().bytes();
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    const auto file = parse_gguf("cut", std::as_bytes(std::span(bytes).first(size)));
    ASSERT_FALSE(file) << size;
    ASSERT_EQ(file.error().code, ErrorCode::kCorrupt);
    ASSERT_THAT(file.error().message, HasSubstr("cut: at byte "));
  }
  EXPECT_TRUE(parse_gguf("whole", std::as_bytes(std::span(bytes))));
}

TEST(Gguf, SurvivesEveryBitFlip) {
  const std::string original = small_file().bytes();
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < original.size() * 8; ++bit) {
    std::string bytes = original;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const auto tables = parse_gguf("flipped", std::as_bytes(std::span(bytes)));
    if (!tables) {
      ++refused;
      continue;
    }
    for (const auto& [key, value] : tables->metadata) {  // what was accepted must be readable
      EXPECT_FALSE(value.describe().empty());
      (void)value.as<std::vector<std::string_view>>();
      (void)value.as<std::vector<std::uint32_t>>();
      (void)value.as<std::string_view>();
      (void)value.as<float>();
    }
  }
  EXPECT_GT(refused, 100U);
}

/// The parts of a split model in a folder of their own.
class SplitFiles {
 public:
  SplitFiles() : folder_(TempFile("", "split").path() + "-folder") { std::filesystem::create_directory(folder_); }
  ~SplitFiles() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(int part) const {
    return folder_ + "/m-0000" + std::to_string(part) + "-of-00002.gguf";
  }
  void write(int part, std::uint16_t number, std::int32_t tensors) const {
    GgufWriter writer;
    writer.set("split.no", number).set("split.count", std::uint16_t{2}).set("split.tensors.count", tensors);
    writer.add_f32("t" + std::to_string(part), {1}, {1.0F * static_cast<float>(part)});
    const std::string bytes = writer.bytes();
    std::ofstream(path(part), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string folder_;
};

TEST(Gguf, OpensSplitFiles) {
  const SplitFiles files;
  files.write(1, 0, 2);
  EXPECT_THAT(GgufFile::open(files.path(1)).error().message, HasSubstr("m-00002-of-00002.gguf"));  // not there
  files.write(2, 1, 2);
  auto file = GgufFile::open(files.path(1));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 2U);
  EXPECT_NE(file->find_tensor("t2"), nullptr);
  EXPECT_EQ(file->headers().size(), 2U);
  EXPECT_THAT(GgufFile::open(files.path(2)).error().message, HasSubstr("part 2 of a model split into 2"));
  files.write(2, 0, 2);
  EXPECT_THAT(GgufFile::open(files.path(1)).error().message, HasSubstr("do not say part"));
  files.write(2, 1, 2);
  files.write(1, 0, 3);
  EXPECT_THAT(GgufFile::open(files.path(1)).error().message, HasSubstr("says 3, the parts hold 2 tensors"));
}

}  // namespace
}  // namespace octavo
