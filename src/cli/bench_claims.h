// The claims that octavo bench measures, both sides in one run: their options, with what is sane for a small model on
// two slow cores, and their measurements. Each has a file of its own.
#pragma once
#include <cstdint>
#include <vector>

#include "cli/bench_finding.h"

namespace octavo {

/// Decoding with a KV cache against computing everything again for each token.
struct KvCacheBench : ClaimOptions {
  KvCacheBench() { repeats = 2; }
  std::uint32_t prompt = 16;
  std::vector<std::uint32_t> lengths = {16, 32, 64, 128};  // generated tokens
};
[[nodiscard]] Result<BenchFinding> measure_kv_cache(const KvCacheBench& options, const ProbeReport& peaks);

/// Batches that close until their longest ends against sequences that come and go at every step.
struct BatchingBench : ClaimOptions {
  BatchingBench() { engine.config.max_num_seqs = 8; }
  WorkloadOptions workload{"prompt:p50=16,p90=48;output:p50=16,p90=56,p99=64", 24};
};
[[nodiscard]] Result<BenchFinding> measure_batching(const BatchingBench& options, const ProbeReport& peaks);

/// One pool, three ways to give it out.
struct MemoryBench : ClaimOptions {
  WorkloadOptions workload{"prompt:p50=16,p90=48;output:p50=16,p90=56,p99=64", 32};
  std::uint32_t pool_tokens = 640;
};
[[nodiscard]] Result<BenchFinding> measure_memory(const MemoryBench& options, const ProbeReport& peaks);

/// Prompts that begin alike: computed each time, or found in the cache.
struct PrefixBench : ClaimOptions {
  std::uint32_t prefix = 256, tail = 16, tokens = 8, requests = 6;
};
[[nodiscard]] Result<BenchFinding> measure_prefix(const PrefixBench& options, const ProbeReport& peaks);

/// A pool too small for all: what becomes of those who must make room.
struct PreemptionBench : ClaimOptions {
  WorkloadOptions workload{"prompt:128;output:48", 8};
  std::uint32_t pool_tokens = 704;
};
[[nodiscard]] Result<BenchFinding> measure_preemption(const PreemptionBench& options, const ProbeReport& peaks);

/// Attention of equally many query heads over fewer and fewer KV heads; no weights are loaded.
struct AttentionBench {
  std::string model;  // whose heads count; empty: those of Llama-3-8B
  std::string kv_type = "bf16";
  std::vector<std::uint32_t> kv_heads;  // empty: MHA, the model's own, MQA
  std::vector<std::uint32_t> depths = {512, 4096};
  std::uint32_t threads = 0, repeats = 3;
  bool json = false;
};
[[nodiscard]] Result<BenchFinding> measure_attention(const AttentionBench& options);

/// Throughput against latency: every step budget at every concurrency.
struct FrontierBench : ClaimOptions {
  FrontierBench() { repeats = 1; }
  WorkloadOptions workload{"prompt:64;output:12", 24};
  std::vector<std::uint32_t> budgets = {16, 64, 256}, concurrency = {1, 4, 16};
};
[[nodiscard]] Result<BenchFinding> measure_frontier(const FrontierBench& options, const ProbeReport& peaks);

}  // namespace octavo
