// What a load's answers add up to: figures named and defined as `vllm bench serve` has them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/jsonl.h"
#include "cli/load_client.h"
#include "octavo/simulate.h"

namespace octavo {

/// Quantiles are interpolated between the two nearest values; zeros where there are none.
struct Figure {
  double mean = 0, median = 0, deviation = 0, p90 = 0, p99 = 0;
};
[[nodiscard]] Figure figure_of(const std::vector<double>& values);

/// Of the answers that came whole; times in milliseconds.
struct LoadReport {
  double seconds = 0;
  std::uint64_t completed = 0, failed = 0;
  std::uint64_t input_tokens = 0, output_tokens = 0;
  std::uint64_t short_outputs = 0;  // answers with fewer tokens than asked for
  std::uint64_t good = 0;           // kept every limit of the goal
  Figure ttft, tpot, itl, e2el;
  double max_late_ms = 0;                       // a request was sent so long after its arrival
  std::map<std::string, std::uint64_t> errors;  // how often each

  [[nodiscard]] double per_second(std::uint64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

/// TPOT is (E2EL - TTFT) / (output tokens - 1) of answers with two tokens or more.
[[nodiscard]] LoadReport sum_up(const LoadRun& run, const Workload& workload, const ServiceGoal& goal);

/// The keys of `vllm bench serve`, and a few of our own. `has_goal`: else request_goodput is null.
[[nodiscard]] Json to_json(const LoadReport& report, bool has_goal);
/// input_lens, output_lens, ttfts, itls, e2els (seconds), start_times, errors: a value for each request.
void add_details(Json& json, const LoadRun& run, const Workload& workload);

void print(const LoadReport& report, bool has_goal);

}  // namespace octavo
