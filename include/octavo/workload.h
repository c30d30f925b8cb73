// Requests before they exist: when they arrive, how long prompt and answer are, and what prompts share.
//
// A workload is a distribution or a trace; drawing from it gives a list of requests, the same for a seed on every
// machine. docs/workloads.md lists the formats, the profiles and where their figures come from.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octavo/result.h"

namespace octavo {

/// Prefixes are named by ids of whole blocks of `prefix_block_tokens`: equal leading ids share their tokens. The last
/// id may stand for a block that is not full. Without ids a prompt shares nothing.
struct PlannedRequest {
  std::chrono::microseconds arrival{};  // since the start; never before the one in front
  std::uint32_t prompt_tokens = 0;      // >= 1
  std::uint32_t output_tokens = 0;      // >= 1
  std::vector<std::uint64_t> prefix_ids{};
};

struct Workload {
  std::string name;  // for reports: "azure-conversation, 5.53/s, 1,000 requests, seed 1"
  std::vector<PlannedRequest> requests;
  std::uint32_t prefix_block_tokens = 512;
  std::optional<std::uint32_t> concurrency;  // closed loop: so many at a time, all arrivals are 0
};

/// How requests follow each other, and how many.
struct Arrivals {
  std::optional<double> rate{};        // per second, infinity: all at once; none: as the trace or profile has it
  std::optional<double> burstiness{};  // gaps are Gamma of this shape: 1 Poisson, < 1 bursts; none: the profile's
  std::optional<std::uint32_t> concurrency{};      // closed loop: so many at a time, the next when one ends
  std::optional<std::uint32_t> requests{};         // how many; none: the trace's, `duration`, or kDefaultRequests
  std::optional<std::chrono::seconds> duration{};  // of the arrivals: rate x duration requests; cuts a trace
  std::uint64_t seed = 1;
};

inline constexpr std::uint32_t kDefaultRequests = 1000;
inline constexpr std::uint32_t kMaxRequests = 10'000'000;
inline constexpr std::uint32_t kMaxRequestTokens = 1U << 24U;  // of a prompt, or of an answer

/// `source`: a CSV or JSONL file of a trace, the name of a built-in profile ("azure-conversation", "azure-code",
/// "sharegpt", "mooncake-conversation"), or a distribution:
///   "prompt:p50=1020,p90=2735,p99=4142;output:p50=129,p90=424"     quantiles
///   "prompt:lognormal=6.63/0.98;output:lognormal=5.02/0.86"        mean / deviation of the logarithm
///   "prompt:512;output:128"                                        every request alike
/// Drawn requests arrive at exactly `rate` on the whole: n of them within n / rate. Another rate, or another number,
/// leaves the lengths of each as they are.
/// Errors name the file and line, the part of the distribution, or the flag.
[[nodiscard]] Result<Workload> make_workload(const std::string& source, const Arrivals& arrivals);

[[nodiscard]] std::vector<std::string> builtin_workloads();

/// The share of all prompt blocks that requests in this order find in a cache of `cache_blocks` blocks (none: without
/// end): the longest run from a prompt's front counts, the block used longest ago goes first.
[[nodiscard]] double prefix_hit_share(const Workload& workload, std::optional<std::uint64_t> cache_blocks);

}  // namespace octavo
