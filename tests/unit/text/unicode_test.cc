#include "text/unicode.h"

#include <gtest/gtest.h>

#include "text/utf8.h"
#include "unit/text/unicode_golden.h"

namespace octavo {
namespace {

class Fnv {
 public:
  void add(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001B3u; }
  void add(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

template <class Visit>
void for_each_code_point(const Visit& visit) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c < 0xD800 || c > 0xDFFF) visit(c);
  }
}

std::string utf8(std::u32string_view characters) {
  std::string text;
  for (const char32_t c : characters) append_utf8(text, c);
  return text;
}

TEST(Unicode, ClassesOfAllCodePointsAreTheLibrarysOwn) {
  Fnv hash;
  for_each_code_point([&](char32_t c) { hash.add(static_cast<unsigned char>(char_class(c))); });
  EXPECT_EQ(hash.value(), unicode_golden::kClasses);
}

TEST(Unicode, NfcOfAllCodePointsIsTheLibrarysOwn) {
  Fnv hash;
  for_each_code_point([&](char32_t c) {
    hash.add(nfc(utf8({&c, 1})));
    hash.add(nfc(utf8(std::u32string{U'e', U'\u0315', c, U'\u0334'})));
    hash.add(nfc(utf8(std::u32string{U'\u1100', c, U'\u0301', U'\u0323'})));
  });
  EXPECT_EQ(hash.value(), unicode_golden::kNfc);
}

TEST(Unicode, SaysWhatACharacterIs) {
  EXPECT_EQ(char_class(U'a'), CharClass::kLetter);
  EXPECT_EQ(char_class(U'漢'), CharClass::kLetter);
  EXPECT_EQ(char_class(U'7'), CharClass::kNumber);
  EXPECT_EQ(char_class(U'½'), CharClass::kNumber);
  EXPECT_EQ(char_class(U'\u0085'), CharClass::kSpace);
  EXPECT_EQ(char_class(U'\u3000'), CharClass::kSpace);
  EXPECT_EQ(char_class(U'\u0301'), CharClass::kOther);
  EXPECT_EQ(char_class(U'\U00011DE0'), CharClass::kNewNumber);
}

TEST(Unicode, NfcComposesWhatItMay) {
  EXPECT_EQ(nfc("plain"), "plain");
  EXPECT_EQ(nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(nfc("a\u0301\u0323"), "\u1EA1\u0301");  // sorted first, then joined
  EXPECT_EQ(nfc("\u1112\u1161\u11AB"), "\uD55C");   // Hangul
  EXPECT_EQ(nfc("\u212B"), "\u00C5");               // a singleton
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");         // excluded from composition
}

}  // namespace
}  // namespace octavo
