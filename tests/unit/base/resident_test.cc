#include "base/resident.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/binary_size.h"
#include "base/memory.h"

namespace octavo {
namespace {

using Range = std::vector<std::span<const std::byte>>;

TEST(ResidentMemory, CountsWhatWasTouchedByRange) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;  // below a huge page
  const AlignedBuffer touched(kBytes), untouched(kBytes), half(kBytes);
  std::memset(touched.data(), 1, kBytes);
  std::memset(half.data(), 1, kBytes / 2);
  const auto range = [](const AlignedBuffer& buffer) { return Range{{buffer.data(), buffer.size()}}; };
  const std::vector<Range> ranges = {range(touched), range(untouched), range(half), {}};
  const ResidentMemory resident = resident_memory(ranges);
  if (resident.total == 0) GTEST_SKIP() << "this kernel does not tell";
  EXPECT_EQ(resident.ranges, (std::vector<std::uint64_t>{kBytes, 0, kBytes / 2, 0}));
  EXPECT_GT(resident.files, 0U);
  EXPECT_GT(resident.stacks, 0U);
  EXPECT_EQ(resident.total, resident.files + resident.stacks + resident.other + kBytes + kBytes / 2);
}

TEST(BinarySize, IsExactWhereFourDecimalsAre) {
  EXPECT_EQ(binary_size(0), "0 bytes");
  EXPECT_EQ(binary_size(1023), "1,023 bytes");
  EXPECT_EQ(binary_size(1024), "1 KiB");
  EXPECT_EQ(binary_size(std::uint64_t{1600} << 20), "1.5625 GiB");
  EXPECT_EQ(binary_size(std::uint64_t{80} << 30), "80 GiB");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'000'000), "1,000,000");
}

}  // namespace
}  // namespace octavo
