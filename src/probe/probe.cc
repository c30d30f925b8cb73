#include "octavo/probe.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/thread_pool.h"
#include "base/topology.h"
#include "kernels/cpu_features.h"
#include "probe/bursts.h"
#include "probe/measure.h"

namespace octavo {
namespace {

constexpr std::uint32_t kBursts = 15;
constexpr double kBurstSeconds = 0.01;
constexpr std::uint64_t kKiB = 1024, kMiB = kKiB * kKiB;
constexpr std::uint64_t kSmallestSet = 4 * kKiB;  // a few vectors for each thread

PeakRate peak(const Burst& burst, std::uint32_t threads) {
  const auto gops = [&](double iterations, double seconds) {
    return 1e-9 * iterations * static_cast<double>(burst.ops_per_iteration) / seconds;
  };
  constexpr std::uint64_t kIterations = 1024;
  const Spread one = time_bursts(kBursts * kBurstSeconds, kBurstSeconds, [&] { burst.run(kIterations); });
  const auto many = static_cast<std::uint64_t>(kBurstSeconds / one.min * kIterations);
  const Spread all = time_threads(threads, kBursts, [&](std::uint32_t) { burst.run(many); });
  const double total = static_cast<double>(many) * threads;
  return {burst.kind, gops(kIterations, one.min), gops(kIterations, one.median), gops(total, all.min),
          gops(total, all.median)};
}

/// Regions come in tight rows, as the layers of a step do: workers spin and do not park.
template <class Body>
RegionCost region_cost(ThreadPool& pool, const Body& body) {
  const Spread seconds = time_bursts(0.05, 50e-6, [&] { pool.run(pool.size(), body); });
  return {1e6 * seconds.min, 1e6 * seconds.median};
}

/// From the first cache to beyond the last.
std::vector<std::uint64_t> default_working_sets() {
  const std::uint64_t most = std::min(512 * kMiB, available_memory_bytes() / 4);
  std::vector<std::uint64_t> sets;
  for (const std::uint64_t bytes : {16 * kKiB, 256 * kKiB, 4 * kMiB, 32 * kMiB, 128 * kMiB, 512 * kMiB}) {
    if (bytes < most) sets.push_back(bytes);
  }
  sets.push_back(std::max(most, kSmallestSet));
  return sets;
}

}  // namespace

Result<ProbeReport> probe(const ProbeConfig& config) {
  const std::uint32_t threads = threads_or_cores(config.threads);
  std::vector<std::uint64_t> sets = config.working_sets.empty() ? default_working_sets() : config.working_sets;
  std::sort(sets.begin(), sets.end());
  OCTAVO_TRY(const AlignedBuffer buffer, written_buffer(std::max(sets.back(), kSmallestSet * threads)));

  const CpuFeatures cpu = detect_cpu();
  const bool zmm = cpu.os_zmm && cpu.avx512f && cpu.avx512bw, ymm = cpu.os_ymm && cpu.avx2;
  ProbeReport report;
  report.cpu = cpu_name();
  report.threads = threads;
  report.int8 = peak(zmm && cpu.avx512vnni ? avx512::kInt8 : ymm ? avx2::kInt8 : portable::kInt8, threads);
  report.f32 = peak(zmm ? avx512::kF32 : ymm && cpu.fma ? avx2::kF32 : portable::kF32, threads);
  report.bf16 = report.f32;  // widened: a shift or a mask, then f32; some CPUs' own instruction is slower than that
  if (missing_for_avx512bf16(cpu).empty()) {
    PeakRate own = peak(avx512bf16::kBf16, threads);
    if (own.one > report.bf16.one) report.bf16 = std::move(own);
  }
  for (const std::uint64_t bytes : sets) {
    report.read.push_back(read_rate(buffer, bytes, 1));
    for (std::uint32_t n = 2; n < threads && bytes == sets.back(); n *= 2) {
      report.read.push_back(read_rate(buffer, bytes, n));
    }
    if (threads > 1) report.read.push_back(read_rate(buffer, bytes, threads));
  }
  ThreadPool pool(threads);
  report.empty_region = region_cost(pool, [](std::uint32_t /*tile*/, std::uint32_t /*worker*/) {});
  std::atomic<std::uint64_t> joined{0};  // of all regions so far
  report.joined_region = region_cost(pool, [&](std::uint32_t /*tile*/, std::uint32_t /*worker*/) {
    const std::uint64_t all = joined.fetch_add(1) / threads * threads + threads;
    while (joined.load() < all) _mm_pause();
  });
  return report;
}

Result<ReadRate> probe_read(std::uint64_t working_set_bytes, std::uint32_t threads) {
  threads = threads_or_cores(threads);
  OCTAVO_TRY(const AlignedBuffer buffer, written_buffer(std::max(working_set_bytes, kSmallestSet * threads)));
  return read_rate(buffer, working_set_bytes, threads);
}

}  // namespace octavo
