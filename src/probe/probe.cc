#include "octavo/probe.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "base/topology.h"
#include "kernels/cpu_features.h"
#include "probe/bursts.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kBurst{0.04};
constexpr int kBursts = 5;
constexpr std::uint64_t kReadBytes = 512ULL << 20U;  // beyond any last-level cache a thread has to itself

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

/// The best of several: seconds from the common start of all threads to the end of the slowest.
double best_seconds(std::uint32_t threads, const std::function<void(std::uint32_t thread)>& work) {
  Clock::time_point begin;
  double best = 1e30;
  std::barrier start(static_cast<std::ptrdiff_t>(threads), [&]() noexcept { begin = Clock::now(); });
  std::barrier end(static_cast<std::ptrdiff_t>(threads),
                   [&]() noexcept { best = std::min(best, Seconds(Clock::now() - begin).count()); });
  const auto bursts = [&](std::uint32_t thread) {
    for (int i = 0; i < kBursts; ++i) {
      start.arrive_and_wait();
      work(thread);
      end.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (std::uint32_t thread = 1; thread < threads; ++thread) others.emplace_back(bursts, thread);
  bursts(0);
  for (std::thread& other : others) other.join();
  return best;
}

/// Operations per second, in 1e9.
double gops(const Burst& burst, std::uint32_t threads) {
  std::uint64_t iterations = 1024;
  for (Seconds taken{0}; taken < kBurst / 4; iterations *= 2) {  // how many make a burst
    const auto begin = Clock::now();
    burst.run(iterations);
    taken = Clock::now() - begin;
  }
  const double seconds = best_seconds(threads, [&](std::uint32_t) { burst.run(iterations); });
  return 1e-9 * static_cast<double>(iterations * burst.ops_per_iteration) * threads / seconds;
}

ReadRate read_rate(const AlignedBuffer& buffer, std::uint32_t threads) {
  const std::uint64_t share = buffer.size() / threads / 64 * 64;
  const double seconds = best_seconds(threads, [&](std::uint32_t thread) {
    volatile std::uint64_t sum = read_memory(buffer.as<std::uint64_t>() + thread * share / 8, share);
    (void)sum;
  });
  return {threads, 1e-9 * static_cast<double>(share * threads) / seconds};
}

}  // namespace

double ProbeReport::peak_read_gbytes_per_s() const {
  double best = 0;
  for (const ReadRate& rate : read) best = std::max(best, rate.gbytes_per_s);
  return best;
}

Result<ProbeReport> probe(std::uint32_t threads) {
  if (threads == 0) threads = usable_cores();
  const CpuFeatures cpu = detect_cpu();
  const bool zmm = cpu.os_zmm && cpu.avx512f && cpu.avx512bw, ymm = cpu.os_ymm && cpu.avx2;
  const Burst& int8 = zmm && cpu.avx512vnni ? avx512::kInt8 : ymm ? avx2::kInt8 : portable::kInt8;
  const Burst& f32 = zmm ? avx512::kF32 : ymm && cpu.fma ? avx2::kF32 : portable::kF32;

  const std::uint64_t bytes = std::min(kReadBytes, available_memory_bytes() / 4);
  if (bytes < (16ULL << 20U)) {
    return Error{ErrorCode::kExhausted, "probing needs 64 MiB of free memory", ""};
  }
  ProbeReport report;
  report.cpu = cpu_name();
  report.threads = threads;
  report.int8_kind = int8.kind;
  report.f32_kind = f32.kind;
  report.int8_gops_one = gops(int8, 1);
  report.int8_gops_all = gops(int8, threads);
  report.f32_gflops_one = gops(f32, 1);
  report.f32_gflops_all = gops(f32, threads);

  AlignedBuffer buffer(bytes);
  std::memset(buffer.data(), 1, bytes);  // real pages, not the kernel's one page of zeros
  for (std::uint32_t n = 1; n < threads; n *= 2) report.read.push_back(read_rate(buffer, n));
  report.read.push_back(read_rate(buffer, threads));
  return report;
}

}  // namespace octavo
