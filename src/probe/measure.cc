#include "probe/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>

#include "kernels/cpu_features.h"
#include "probe/bursts.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLeastBursts = 5;
constexpr std::uint32_t kReadBursts = 7;
constexpr std::uint64_t kReadBurstBytes = 64ULL << 20U;  // by each thread, at least: far longer than a barrier

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

ReadMemory widest_read() {
  const CpuFeatures cpu = detect_cpu();
  if (cpu.os_zmm && cpu.avx512f && cpu.avx512bw) return avx512::read_memory;
  if (cpu.os_ymm && cpu.avx2) return avx2::read_memory;
  return portable::read_memory;
}

}  // namespace

Spread spread_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {seconds.front(), seconds[seconds.size() / 2]};
}

Spread time_bursts(double total_seconds, double burst_seconds, const std::function<void()>& work) {
  std::uint64_t repeats = 1;
  const auto burst = [&] {
    const auto begin = Clock::now();
    for (std::uint64_t i = 0; i < repeats; ++i) work();
    return seconds_since(begin);
  };
  double taken = burst();  // the first ones bring code, data and clocks to where they will be
  for (; taken < burst_seconds / 4; taken = burst()) repeats *= 2;
  repeats = static_cast<std::uint64_t>(std::max(1.0, static_cast<double>(repeats) * burst_seconds / taken));
  std::vector<double> seconds;
  for (double total = 0; total < total_seconds || seconds.size() < kLeastBursts; total += taken) {
    taken = burst();
    seconds.push_back(taken / static_cast<double>(repeats));
  }
  return spread_of(std::move(seconds));
}

Spread time_threads(std::uint32_t threads, std::uint32_t bursts, const std::function<void(std::uint32_t)>& work) {
  Clock::time_point begin;
  std::vector<double> seconds;
  seconds.reserve(bursts);
  std::barrier start(static_cast<std::ptrdiff_t>(threads), [&]() noexcept { begin = Clock::now(); });
  std::barrier end(static_cast<std::ptrdiff_t>(threads), [&]() noexcept { seconds.push_back(seconds_since(begin)); });
  const auto run = [&](std::uint32_t thread) {
    for (std::uint32_t burst = 0; burst < bursts; ++burst) {
      start.arrive_and_wait();
      work(thread);
      end.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (std::uint32_t thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
  return spread_of(std::move(seconds));
}

ReadRate read_rate(const AlignedBuffer& buffer, std::uint64_t bytes, std::uint32_t threads) {
  const ReadMemory read = widest_read();
  const std::uint64_t share = std::max<std::uint64_t>(bytes / threads / 64, 1) * 64;
  const std::uint64_t passes = (kReadBurstBytes + share - 1) / share;
  const Spread seconds = time_threads(threads, kReadBursts, [&](std::uint32_t thread) {
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
      volatile std::uint64_t sum = read(buffer.as<std::uint64_t>() + thread * share / 8, share);
      (void)sum;
    }
  });
  const double gbytes = 1e-9 * static_cast<double>(share * threads * passes);
  return {threads, bytes, gbytes / seconds.min, gbytes / seconds.median};
}

Result<AlignedBuffer> written_buffer(std::uint64_t bytes) {
  const std::uint64_t available = available_memory_bytes();
  if (bytes > available / 2) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("a working set of {} MiB is more than half of the {} MiB available: choose a smaller one",
                             bytes >> 20, available >> 20),
                 "working_set"};
  }
  AlignedBuffer buffer(bytes);
  std::memset(buffer.data(), 1, bytes);  // real pages, not the kernel's one page of zeros
  return buffer;
}

}  // namespace octavo
