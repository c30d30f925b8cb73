#include "octavo/kernel_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/float_mode.h"
#include "kernels/select.h"
#include "probe/kernel_parts.h"

namespace octavo {
namespace {

constexpr double kSeconds = 0.1, kBurstSeconds = 0.004;  // of each measurement

Error refused(const char* field, std::string why) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("--{}: {}", field, std::move(why)), field};
}

Result<> check(const KernelBenchConfig& config) {
  const std::vector<std::string> known = kernel_format_names();
  for (const std::string& name : config.formats) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return refused("formats", fmt::format("'{}' has no kernel; {} have", name, fmt::join(known, ", ")));
    }
  }
  if (config.inputs == 0 || config.inputs % 256 != 0) {
    return refused("inputs", fmt::format("{} is not a multiple of 256", config.inputs));
  }
  if (config.outputs == 0) return refused("outputs", "0 leaves nothing to compute");
  for (const std::uint32_t rows : config.rows) {
    if (rows == 0) return refused("rows", "0 leaves nothing to compute");
  }
  for (const std::uint32_t dim : config.head_dims) {
    if (dim == 0 || dim % 16 != 0 || dim > 256) {
      return refused("head-dims", fmt::format("{} is not a multiple of 16 up to 256", dim));
    }
  }
  for (const std::uint32_t group : config.groups) {
    if (group == 0 || group > 64) return refused("groups", fmt::format("{} is not within 1 to 64", group));
  }
  if (config.kv_heads == 0 || config.kv_heads > 256) {
    return refused("kv-heads", fmt::format("{} is not within 1 to 256", config.kv_heads));
  }
  return Ok{};
}

}  // namespace

KernelBench::KernelBench(const KernelBenchConfig& config, const Kernels& kernels, const ProbeReport& peaks,
                         const KernelBenchProgress& progress)
    : config_(config), kernels_(kernels), peaks_(peaks), progress_(progress), pool_(peaks.threads) {}

std::uint64_t KernelBench::total() const {
  const std::size_t formats = config_.formats.empty() ? kernel_format_names().size() : config_.formats.size();
  return formats * config_.rows.size() +
         2 * config_.kv_types.size() * config_.head_dims.size() * config_.groups.size() * config_.depths.size() +
         (config_.vocab == 0 ? 0 : kSamplingCases);
}

Result<KernelSpeed> KernelBench::speed(const PeakRate& peak, double ops, double bytes,
                                       const std::function<void()>& work) {
  const Spread seconds = time_bursts(kSeconds, kBurstSeconds, work);
  OCTAVO_TRY(const ReadRate read, bandwidth(static_cast<std::uint64_t>(bytes)));
  KernelSpeed out;
  out.min_us = 1e6 * seconds.min;
  out.median_us = 1e6 * seconds.median;
  out.gops = 1e-9 * ops / seconds.min;
  out.peak_share = out.gops / (pool_.size() == 1 ? peak.one : peak.all);
  out.gbytes = 1e-9 * bytes / seconds.min;
  out.read_share = out.gbytes / read.best;
  return out;
}

Result<ReadRate> KernelBench::bandwidth(std::uint64_t working_set_bytes) {
  auto found = bandwidths_.find(working_set_bytes);
  if (found == bandwidths_.end()) {
    OCTAVO_TRY(const ReadRate rate, probe_read(working_set_bytes, pool_.size()));
    found = bandwidths_.emplace(working_set_bytes, rate).first;
  }
  return found->second;
}

void KernelBench::tell(const std::string& what) {
  if (progress_) progress_(what, done_, total());
  ++done_;
}

Result<KernelBenchReport> bench_kernels(const KernelBenchConfig& config, const KernelBenchProgress& progress) {
  OCTAVO_CHECK_OK(check(config));
  OCTAVO_TRY(const KernelChoice choice, select_kernels(config.isa));
  KernelBenchReport report;
  report.isa = choice.kernels->name;
  ProbeConfig probed;
  probed.threads = config.threads;
  probed.working_sets = {1ULL << 20U};  // each measurement asks for the bandwidth at its own
  OCTAVO_TRY(report.peaks, probe(probed));
  KernelBench bench(config, *choice.kernels, report.peaks, progress);
  const FloatMode mode;
  OCTAVO_TRY(report.gemm, bench.gemm());
  OCTAVO_TRY(report.attention, bench.attention());
  report.sampling = bench.sampling();
  return report;
}

}  // namespace octavo
