#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/memory.h"
#include "base/topology.h"

namespace octavo {
namespace {

TEST(ThreadPool, EveryTileRunsExactlyOnce) {
  for (const std::uint32_t threads : {1U, 2U, 4U}) {
    ThreadPool pool(threads);
    for (std::uint32_t tiles : {0U, 1U, 2U, 3U, 17U, 1000U}) {
      std::vector<std::atomic<int>> hits(tiles);
      pool.run(tiles, [&](std::uint32_t tile, std::uint32_t worker) {
        ASSERT_LT(worker, threads);
        hits[tile].fetch_add(1, std::memory_order_relaxed);
      });
      for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1);
    }
  }
}

TEST(ThreadPool, RegionsSeeEachOthersWrites) {
  ThreadPool pool(3);
  std::vector<int> values(64, 0);  // plain: the pool orders one region before the next
  for (int round = 1; round <= 2000; ++round) {
    pool.run(64, [&](std::uint32_t tile, std::uint32_t) { values[tile] += static_cast<int>(tile); });
    for (int tile = 0; tile < 64; ++tile) ASSERT_EQ(values[tile], round * tile);
  }
}

TEST(ThreadPool, ParkedWorkersComeBack) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> sum{0};
    pool.run(100, [&](std::uint32_t tile, std::uint32_t) { sum += static_cast<int>(tile); });
    EXPECT_EQ(sum.load(), 4950);
  }
}

TEST(Machine, HasCoresAndMemory) {
  EXPECT_GE(usable_cores(), 1U);
  EXPECT_GT(available_memory_bytes(), std::uint64_t{1} << 20);
}

TEST(AlignedBuffer, IsAlignedAndZeroed) {
  const AlignedBuffer small(100);
  const AlignedBuffer large(std::size_t{5} << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small.data()) % 64, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data()) % (std::size_t{2} << 20), 0U);
  EXPECT_EQ(large.as<std::uint64_t>()[(5 << 20) / 8 - 1], 0U);
}

}  // namespace
}  // namespace octavo
