// Requests before they exist: when they arrive, how long prompt and answer are, and what prompts share.
//
// A workload is a distribution or a trace; drawing from it gives a list of requests, the same for a seed on every
// machine. docs/capacity.md lists the formats.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octavo/result.h"

namespace octavo {

/// Prefixes are named by ids of whole blocks of `prefix_block_tokens`: equal leading ids share their tokens.
struct PlannedRequest {
  std::chrono::microseconds arrival{};  // since the start
  std::uint32_t prompt_tokens = 0;      // >= 1
  std::uint32_t output_tokens = 0;      // >= 1
  std::vector<std::uint64_t> prefix_ids;
};

struct Workload {
  std::string name;  // for reports: "azure-conversation, 5.53/s, 1,000 requests, seed 1"
  std::vector<PlannedRequest> requests;
  std::uint32_t prefix_block_tokens = 512;
};

/// How requests follow each other.
struct Arrivals {
  std::optional<double> rate;                // per second; none: as the trace or profile has it
  std::optional<double> burstiness;          // gaps are Gamma of this shape: 1 Poisson, < 1 bursts; none: the profile's
  std::optional<std::uint32_t> concurrency;  // closed loop: so many at a time, the next when one ends; arrivals are 0
  std::optional<std::uint32_t> requests;     // how many; none: the trace's, or `duration`
  std::optional<std::chrono::seconds> duration;
  std::uint64_t seed = 1;
};

/// `source`: a CSV or JSONL file of a trace, the name of a built-in profile ("azure-conversation", "azure-code",
/// "sharegpt", "mooncake-conversation"), or a distribution:
///   "prompt:p50=1020,p90=2735,p99=4142;output:p50=129,p90=424"     quantiles
///   "prompt:lognormal=6.63/0.98;output:lognormal=5.02/0.86"        ln mu / sigma
///   "prompt:512;output:128"                                        every request alike
/// Errors name the file and line, or the part of the distribution.
[[nodiscard]] Result<Workload> make_workload(const std::string& source, const Arrivals& arrivals);

[[nodiscard]] std::vector<std::string> builtin_workloads();

}  // namespace octavo
