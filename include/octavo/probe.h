// What this machine can reach at most: the limits that speed is told against.
//
// Measured in short bursts, best of several: the peak of a quiet machine, not an average of a busy one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "octavo/result.h"

namespace octavo {

struct ReadRate {
  std::uint32_t threads = 0;
  double gbytes_per_s = 0;  // 1e9 bytes; memory beyond the caches, read once in order
};

/// A multiply and its add count as two operations.
struct ProbeReport {
  std::string cpu;  // as the system names it
  std::uint32_t threads = 0;
  std::string int8_kind, f32_kind;  // the instructions measured: "AVX-512 VNNI", "AVX2 FMA"
  double int8_gops_one = 0, int8_gops_all = 0;
  double f32_gflops_one = 0, f32_gflops_all = 0;
  std::vector<ReadRate> read;  // by ascending threads, the last is all of them

  /// The best of `read`.
  [[nodiscard]] double peak_read_gbytes_per_s() const;
};

/// Takes about two seconds and up to 512 MiB of memory. `threads` 0: the cores this process may use.
[[nodiscard]] Result<ProbeReport> probe(std::uint32_t threads = 0);

}  // namespace octavo
