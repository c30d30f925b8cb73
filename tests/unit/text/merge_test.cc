// The merge loop against the obvious one, which looks for the cheapest pair again after every merge.
#include "text/merge.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace octavo {
namespace {

/// A made-up vocabulary: whether two texts join, and how early, is a hash of them.
struct Rule {
  std::uint64_t seed;
  std::uint32_t costs;  // how many different ones there are
  std::size_t longest;

  [[nodiscard]] std::optional<Join> operator()(std::string_view left, std::string_view right) const {
    if (left.size() + right.size() > longest) return std::nullopt;
    std::uint64_t hash = seed;
    for (const char c : std::string(left) + "|" + std::string(right))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x9E3779B97F4A7C15U, hash ^= hash >> 29;
    if (hash % 4 == 0) return std::nullopt;
    return Join{static_cast<std::uint32_t>((hash >> 8) % costs), {static_cast<std::int32_t>(hash % 1000)}};
  }
};

std::vector<std::string> merged(const std::string& text, const Rule& rule) {
  Merger merger;
  for (std::uint32_t i = 0; i < text.size(); ++i) merger.push_back(i, 1, TokenId{0});
  const auto part = [&](const Symbol& s) { return std::string_view(text).substr(s.begin, s.length); };
  merger.merge([&](const Symbol& left, const Symbol& right) { return rule(part(left), part(right)); });
  std::vector<std::string> parts;
  merger.for_each([&](const Symbol& s) { parts.emplace_back(part(s)); });
  return parts;
}

std::vector<std::string> merged_plainly(const std::string& text, const Rule& rule) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  for (;;) {
    std::size_t best = parts.size();
    std::uint32_t best_cost = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto join = rule(parts[i], parts[i + 1]);
      if (join && (best == parts.size() || join->cost < best_cost)) best = i, best_cost = join->cost;
    }
    if (best == parts.size()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Merge, AlwaysTheCheapestThenTheLeftmost) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const std::uint32_t letters = 1 + static_cast<std::uint32_t>(random() % 4);
    const Rule rule{random(), seed % 3 == 0 ? 3U : 1000U, 2 + random() % 12};
    std::string text(random() % 200, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % letters);
    ASSERT_EQ(merged(text, rule), merged_plainly(text, rule)) << "seed " << seed;
    std::string repeated;
    while (repeated.size() < 200) repeated += text.substr(0, 1 + seed % 7) + "b";
    ASSERT_EQ(merged(repeated, rule), merged_plainly(repeated, rule)) << "seed " << seed << ", repeated";
  }
}

}  // namespace
}  // namespace octavo
