#include <gtest/gtest.h>

#include <set>

#include "kv/block_hash.h"

namespace octavo {
namespace {

TEST(BlockHash, RootsTellModelAndSaltApart) {
  std::set<BlockHash> roots;
  for (const char* model : {"", "a", "ab", "b"}) {
    for (const char* salt : {"", "a", "b", "ab"}) EXPECT_TRUE(roots.insert(root_hash(model, salt)).second);
  }
}

TEST(BlockHash, ChildrenDependOnParentAndTokens) {
  const std::vector<TokenId> a{{1}, {2}}, b{{2}, {1}};
  const BlockHash root = root_hash("m", "");
  EXPECT_EQ(child_hash(root, a), child_hash(root, a));
  EXPECT_NE(child_hash(root, a), child_hash(root, b));
  EXPECT_NE(child_hash(root, a), child_hash(child_hash(root, a), a));
}

TEST(BlockHash, IsSha256OfTheStatedFields) {
  // printf 'octavo kv root 1\1\0\0\0\0\0\0\0m\0\0\0\0\0\0\0\0' | sha256sum
  const BlockHash root = root_hash("m", "");
  EXPECT_EQ(root[0], std::byte{0x14});
  EXPECT_EQ(root[31], std::byte{0x86});
}

}  // namespace
}  // namespace octavo
