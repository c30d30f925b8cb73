// Speed of single kernels on synthetic data, each beside the probed peak: no model needed.
//
// Matrix products run as a step runs them: rows prepared once, panels handed out to the threads. Attention reads KV
// blocks of 16 tokens in random order, decode from more sequences than caches hold. A multiply and its add are two
// operations.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octavo/model_info.h"
#include "octavo/probe.h"
#include "octavo/result.h"

namespace octavo {

struct KernelBenchConfig {
  std::string isa;            // a kernel table by name; empty: the fastest this machine runs
  std::uint32_t threads = 1;  // 0: the cores this process may use

  std::vector<std::string> formats;                                 // "Q4_0"; empty: every format with a kernel
  std::vector<std::uint32_t> rows = {1, 2, 4, 8, 16, 32, 64, 512};  // of activations; empty: no matrix products
  std::uint32_t outputs = 4096, inputs = 2048;                      // of the matrix; inputs a multiple of 256

  std::vector<KvType> kv_types = {KvType::kBF16};                 // empty: no attention
  std::vector<std::uint32_t> head_dims = {64, 80, 96, 128, 256};  // multiples of 16, up to 256
  std::vector<std::uint32_t> groups = {1, 3, 4, 8};               // query heads per KV head
  std::uint32_t kv_heads = 2;                                     // of every shape
  std::vector<std::uint32_t> depths = {512, 4096, 16384};         // tokens before the queries

  std::uint32_t vocab = 128256;  // 0: no sampling
};

/// Microseconds of one call over bursts, and what the best one reached.
struct KernelSpeed {
  double min_us = 0, median_us = 0;
  double gops = 0, peak_share = 0;    // of the peak of the format's own arithmetic
  double gbytes = 0, read_share = 0;  // weights or KV per second, of the bandwidth at that working set
};

struct GemmRow {
  std::string format;
  std::uint32_t rows = 0;
  KernelSpeed speed;
};

struct AttentionRow {
  KvType kv_type = KvType::kBF16;
  std::uint32_t head_dim = 0, group = 0, depth = 0;
  std::uint32_t queries = 0;    // consecutive positions of a sequence: 1 is decode, more is a prefill tile
  std::uint32_t sequences = 0;  // that one call attends over
  std::uint32_t kv_heads = 0;
  std::uint64_t kv_bytes_per_token = 0;  // of one layer
  KernelSpeed speed;
};

/// One row of logits. `flat`: as from a model that knows nothing, so that filters keep tens of thousands of tokens.
struct SamplingRow {
  std::string what;  // "top-p 0.95"
  bool flat = false;
  double min_us = 0, median_us = 0;
};

struct KernelBenchReport {
  std::string isa;
  ProbeReport peaks;
  std::vector<GemmRow> gemm;
  std::vector<AttentionRow> attention;
  std::vector<SamplingRow> sampling;
};

/// `done` of `total` measurements; what is measured next.
using KernelBenchProgress = std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)>;

/// About a minute with the defaults. Refuses (kInvalidArgument) what has no kernel, with what has.
[[nodiscard]] Result<KernelBenchReport> bench_kernels(const KernelBenchConfig& config,
                                                      const KernelBenchProgress& progress = {});

}  // namespace octavo
