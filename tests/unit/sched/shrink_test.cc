#include "support/shrink.h"

#include <cstdlib>

namespace octavo {
namespace {

using Arrivals = std::vector<std::uint32_t>;

TEST(Shrink, FindsTheFewThatMatter) {
  Arrivals all(60);
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  int asked = 0;
  const auto needs = [&](const Arrivals& culprits) {
    return test::shrink(all, [&](const Arrivals& some) {
      ++asked;
      return std::ranges::includes(some, culprits);
    });
  };
  EXPECT_EQ(needs({3, 17, 59}), (Arrivals{3, 17, 59}));
  EXPECT_LT(asked, 100);
  EXPECT_EQ(needs({}), Arrivals{});
  EXPECT_EQ(needs(all), all);
}

TEST(Shrink, EitherOfTwoPairsIsEnough) {
  const Arrivals fewest = test::shrink({0, 1, 2, 3, 4, 5, 6}, [](const Arrivals& some) {
    return std::ranges::includes(some, Arrivals{1, 5}) || std::ranges::includes(some, Arrivals{2, 4});
  });
  EXPECT_EQ(fewest.size(), 2U);
}

TEST(Shrink, AChildThatFailsOrCrashesAnswersNothing) {
  const auto child = [](int what) {
    return test::in_child(true, [what] {
      EXPECT_NE(what, 1);
      if (what == 2) std::abort();
      return what;
    });
  };
  EXPECT_EQ(child(0), 0);
  EXPECT_EQ(child(1), std::nullopt);
  EXPECT_EQ(child(2), std::nullopt);
}

}  // namespace
}  // namespace octavo
