// What this machine can reach at most: the limits that speed is told against.
//
// Measured in short bursts. The best burst is the peak of a quiet machine; the median tells how quiet it was.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "octavo/result.h"

namespace octavo {

/// 1e9 operations per second on registers; a multiply and its add count as two.
struct PeakRate {
  std::string kind;                // the instructions: "AVX-512 VNNI", "AVX2 FMA"
  double one = 0, one_median = 0;  // on one thread
  double all = 0, all_median = 0;  // on all of them
};

/// 1e9 bytes per second: `working_set_bytes` shared out among the threads, read in order again and again.
struct ReadRate {
  std::uint32_t threads = 0;
  std::uint64_t working_set_bytes = 0;
  double best = 0, median = 0;
};

/// Microseconds of a parallel region on the thread pool that computes nothing.
struct RegionCost {
  double min_us = 0, median_us = 0;
};

struct ProbeReport {
  std::string cpu;  // as the system names it
  std::uint32_t threads = 0;
  PeakRate int8, bf16, f32;
  std::vector<ReadRate> read;  // ascending working sets, each on one thread and on all; the largest by threads
  RegionCost empty_region;     // whoever comes first takes all tiles: what it costs to offer work
  RegionCost joined_region;    // every thread takes one: what it costs to have help
};

struct ProbeConfig {
  std::uint32_t threads = 0;                // 0: the cores this process may use
  std::vector<std::uint64_t> working_sets;  // bytes; empty: from the first cache to beyond the last
};

/// Takes some three seconds and as much memory as the largest working set (512 MiB, or a quarter of what is free).
/// Refused by kExhausted if a working set does not fit into what is free.
[[nodiscard]] Result<ProbeReport> probe(const ProbeConfig& config = {});

/// The bandwidth at one working set: a model's decode is held against that of its own weights and KV.
[[nodiscard]] Result<ReadRate> probe_read(std::uint64_t working_set_bytes, std::uint32_t threads = 0);

}  // namespace octavo
