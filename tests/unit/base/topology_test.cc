#include "base/topology.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "base/memory.h"
#include "base/prefault.h"
#include "base/thread_pool.h"

namespace octavo {
namespace {

cpu_set_t allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

TEST(Topology, ListsEveryAllowedCpuOnce) {
  const std::vector<std::uint32_t> cpus = cpus_in_order();
  const cpu_set_t set = allowed();
  EXPECT_EQ(cpus.size(), static_cast<std::size_t>(CPU_COUNT(&set)));
  EXPECT_EQ(std::set(cpus.begin(), cpus.end()).size(), cpus.size());
  for (const std::uint32_t cpu : cpus) EXPECT_TRUE(CPU_ISSET(cpu, &set));
}

TEST(Topology, KeepsToTheAffinityOfTheThread) {
  const std::vector<std::uint32_t> cpus = cpus_in_order();
  std::thread([&] {
    ASSERT_TRUE(bind_to_cpu(cpus.back()));
    EXPECT_EQ(cpus_in_order(), std::vector{cpus.back()});
    EXPECT_EQ(usable_cores(), 1U);
  }).join();
}

TEST(ThreadPool, BindsEachWorkerToItsCpu) {
  const std::vector<std::uint32_t> cpus = cpus_in_order();
  const auto threads = static_cast<std::uint32_t>(cpus.size()) + 1;  // the last goes round
  std::vector<std::uint32_t> seen(threads, ~0U);
  std::thread([&] {  // its binding ends with it
    ThreadPool pool(threads, cpus);
    pool.bind_caller();
    for (int round = 0; round < 10'000 && std::ranges::count(seen, ~0U) > 0; ++round) {
      pool.run(4 * threads, [&](std::uint32_t, std::uint32_t worker) {
        if (seen[worker] == ~0U) seen[worker] = static_cast<std::uint32_t>(sched_getcpu());
        std::this_thread::yield();
      });
    }
  })
      .join();
  for (std::uint32_t w = 0; w < threads; ++w) EXPECT_EQ(seen[w], cpus[w % cpus.size()]) << "worker " << w;
}

TEST(BackgroundPrefault, KeepsWhatIsThere) {
  const AlignedBuffer buffer(std::size_t{32} << 20);
  for (std::size_t i = 0; i < buffer.size(); i += 4096 * 7) buffer.data()[i] = std::byte{42};
  {
    const BackgroundPrefault prefault(std::vector{std::span(buffer.data(), buffer.size())});
    for (std::size_t i = 1; i < buffer.size(); i += 4096 * 7) buffer.data()[i] = std::byte{43};
  }
  for (std::size_t i = 0; i < buffer.size(); i += 4096 * 7) {
    ASSERT_EQ(buffer.data()[i], std::byte{42});
    ASSERT_EQ(buffer.data()[i + 1], std::byte{43});
  }
}

}  // namespace
}  // namespace octavo
