// A server's day in seconds: the scheduler and KV manager that serve, run over a virtual clock with a cost model in
// place of the executor. Equal inputs give equal reports on every machine.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octavo/config.h"
#include "octavo/model_shape.h"
#include "octavo/planner.h"
#include "octavo/profile.h"
#include "octavo/result.h"
#include "octavo/workload.h"

namespace octavo {

/// What a request must keep to be good.
struct ServiceGoal {
  std::optional<std::chrono::milliseconds> ttft, tpot, e2e;
};

struct SimulateConfig {
  EngineConfig engine;
  std::optional<std::uint64_t> memory;  // as MemoryQuestion
  StepCurve steps;                      // what a step costs: step_curve()
  ServiceGoal goal;
};

/// Mean and quantiles of one figure; zeros where nothing was counted.
struct Spectrum {
  std::uint64_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
  std::vector<double> percentiles;  // [101], or empty
};

/// How things stood at one moment, seconds after the first arrival.
struct Moment {
  double seconds = 0;
  std::uint32_t running = 0, waiting = 0;
  double kv_used_bytes = 0, kv_reserved_bytes = 0;
};

struct SimulateReport {
  MemoryPlan memory;
  std::uint64_t requests = 0, steps = 0;         // answered
  std::uint64_t never_fit = 0, turned_away = 0;  // refused: longer than any request may be; the queue was full
  double seconds = 0;                            // of virtual time, first arrival to last token
  Spectrum ttft_ms, tpot_ms, itl_ms, e2e_ms, queue_ms;
  double output_tokens_per_s = 0, total_tokens_per_s = 0, requests_per_s = 0;
  double goodput_per_s = 0, good_share = 0;                         // requests that kept the goal
  Spectrum live_tokens, running, kv_used_bytes, kv_reserved_bytes;  // over time
  std::vector<Moment> timeline;                                     // some hundreds, evenly over the steps
  double queued_share = 0, preempted_share = 0;  // of requests: did not start at once; lost their place
  std::uint64_t preemptions = 0, recomputed_tokens = 0;
  double prefix_hit_share = 0;    // of prompt tokens
  double internal_waste = 0;      // of reserved
  double free_while_waiting = 0;  // of the pool, mean over steps in which somebody waits
  std::uint32_t max_num_batched_tokens = 0;
  // Where the time went, as shares: of step time by purpose; of those, waiting for memory to be read; of all time, none
  // to do, and somebody waiting for KV blocks or for a seat (max_num_seqs).
  double weights_share = 0, head_share = 0, attention_share = 0, overhead_share = 0;
  double bandwidth_share = 0;
  double idle_share = 0, memory_wait_share = 0, seat_wait_share = 0;
  std::string limit;  // what more load would meet first: "memory", "seats", "bandwidth", "compute"; "load": none yet
};

/// The step costs of a model on a machine: its own part of the profile, else composed from the machine part.
struct StepCosting {
  StepCurve curve;
  bool measured = false;  // on this very model
};
[[nodiscard]] Result<StepCosting> step_curve(const MachineProfile& profile, const ModelShape& model,
                                             const EngineConfig& config);

[[nodiscard]] Result<SimulateReport> simulate(const ModelShape& model, const SimulateConfig& config,
                                              const Workload& workload);

/// One change to the configuration, and what would become of the same workload.
struct WhatIf {
  std::string change;  // "KV f16", "static batches"
  std::optional<SimulateReport> report;
  std::string why_not;  // where there is no report
};
/// KV types, block sizes, memory strategies, windows where attention is full (another model: it sees less), batching,
/// policy, prefix caching, swap: each changed alone; the first row
/// is the configuration as it is. Keys cost in proportion to the bytes of their type.
[[nodiscard]] std::vector<WhatIf> what_if(const ModelShape& model, const SimulateConfig& config,
                                          const Workload& workload);

/// The largest rate of arrivals at which `kGoodShare` of all requests keep the goal.
struct RateSearch {
  double rate = 0;  // per second; 0: not even a request alone does
  double good_share = 0;
  std::uint32_t runs = 0;  // simulations that it took
};
inline constexpr double kGoodShare = 0.99;
/// To two percent, by halving. `arrivals` has no concurrency; the goal names something.
[[nodiscard]] Result<RateSearch> largest_rate(const ModelShape& model, const SimulateConfig& config,
                                              const std::string& source, const Arrivals& arrivals);

}  // namespace octavo
