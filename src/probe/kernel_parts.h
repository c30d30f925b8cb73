// The parts of bench_kernels: each measures one family of kernels.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "octavo/kernel_bench.h"
#include "probe/measure.h"

namespace octavo {

inline constexpr std::size_t kSamplingCases = 9;

/// What all parts share: kernels, threads and the limits to hold figures against.
class KernelBench {
 public:
  KernelBench(const KernelBenchConfig& config, const Kernels& kernels, const ProbeReport& peaks,
              const KernelBenchProgress& progress);

  Result<std::vector<GemmRow>> gemm();
  Result<std::vector<AttentionRow>> attention();
  std::vector<SamplingRow> sampling();

  /// All measurements to come.
  [[nodiscard]] std::uint64_t total() const;

 private:
  Result<KernelSpeed> speed(const PeakRate& peak, double ops, double bytes, const std::function<void()>& work);
  Result<ReadRate> bandwidth(std::uint64_t working_set_bytes);
  void tell(const std::string& what);

  const KernelBenchConfig& config_;
  const Kernels& kernels_;
  const ProbeReport& peaks_;
  const KernelBenchProgress& progress_;
  ThreadPool pool_;
  std::map<std::uint64_t, ReadRate> bandwidths_;
  std::uint64_t done_ = 0;
};

/// Names of the weight formats that have a kernel.
[[nodiscard]] std::vector<std::string> kernel_format_names();

}  // namespace octavo
