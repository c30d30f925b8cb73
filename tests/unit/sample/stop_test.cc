// Stop strings: however the text is cut into pieces, the outcome is that of a search in the whole text.
#include "sample/stop.h"

#include <gtest/gtest.h>

#include <random>

namespace octavo {
namespace {

struct Outcome {
  std::string text;
  std::optional<std::string> stop;
};

/// The stop string that ends first; of several that end there, the longest.
Outcome search(const std::string& text, const std::vector<std::string>& stops, bool include) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    const std::string* best = nullptr;
    for (const std::string& stop : stops) {
      const bool ends_here = stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0;
      if (ends_here && (!best || stop.size() > best->size())) best = &stop;
    }
    if (best) return {text.substr(0, end - (include ? 0 : best->size())), *best};
  }
  return {text, std::nullopt};
}

TEST(StopMatcher, AgreesWithASearchInTheWholeText) {
  const unsigned seed = 4711;
  std::mt19937 random(seed);
  const auto word = [&](std::size_t longest) {
    std::string out;
    for (std::size_t n = 1 + random() % longest; n > 0; --n) out += static_cast<char>('a' + random() % 3);
    return out;
  };
  for (int trial = 0; trial < 20000; ++trial) {
    std::vector<std::string> stops;
    for (unsigned n = 1 + random() % 3; n > 0; --n) stops.push_back(word(5));
    const std::string text = word(30);
    const bool include = random() % 2 == 0;
    const Outcome expected = search(text, stops, include);

    StopMatcher matcher(stops, include);
    std::string got;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = std::min<std::size_t>(1 + random() % 4, text.size() - at);
      got += matcher.feed(text.substr(at, length));
      ASSERT_TRUE(expected.text.starts_with(got)) << "given out too early; seed " << seed << ", trial " << trial;
      at += length;
    }
    got += matcher.finish();
    ASSERT_EQ(got, expected.text) << text << "; seed " << seed << ", trial " << trial;
    ASSERT_EQ(matcher.matched(), expected.stop) << text << "; seed " << seed << ", trial " << trial;
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStop) {
  StopMatcher matcher({"END"}, false);
  EXPECT_EQ(matcher.feed("abc E"), "abc ");
  EXPECT_EQ(matcher.feed("N"), "");
  EXPECT_EQ(matcher.feed("x"), "ENx");
  EXPECT_EQ(matcher.feed("END and more"), "");
  EXPECT_EQ(matcher.matched(), "END");
  EXPECT_EQ(matcher.feed("ignored"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, WithoutStopsTextPassesThrough) {
  StopMatcher matcher({""}, false);
  EXPECT_EQ(matcher.feed("abc"), "abc");
  EXPECT_FALSE(matcher.matched());
}

}  // namespace
}  // namespace octavo
