// Comparing ways to serve: the same requests through one engine after the other, in turn, on the same machine.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/statistics.h"
#include "octavo/engine.h"
#include "octavo/probe.h"
#include "octavo/workload.h"

namespace octavo {

/// One way to serve.
struct Side {
  std::string name;  // "paged"
  std::unique_ptr<Engine> engine;
};

struct SideConfig {
  std::string name;
  std::function<void(EngineConfig&)> set;  // what it has of its own
};

/// Loads one engine for each. All get the step budget of the first, unless they set it: a budget measured twice could
/// differ.
[[nodiscard]] Result<std::vector<Side>> load_sides(const EngineOptions& options,
                                                   const std::vector<SideConfig>& configs);

/// What one run of a list of requests took and did. Times count from when the first request was scheduled or, if it
/// came later, from the request's arrival.
struct SideRun {
  double seconds = 0;                                // until the last token of all
  std::vector<double> ttft_ms, tpot_ms, latency_ms;  // by request; TPOT: of those with two tokens or more
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  std::uint64_t steps = 0, computed_tokens = 0;
  std::uint64_t preemptions = 0, preemptions_swap = 0, moves = 0;
  std::uint32_t peak_running = 0;
  double mean_running = 0, mean_reserved_bytes = 0, mean_used_bytes = 0;  // over the steps that were seen
  std::vector<std::uint64_t> hashes;                                      // of each request's output tokens

  [[nodiscard]] double tokens_per_s() const { return static_cast<double>(output_tokens) / seconds; }
};

/// Runs the list: all at once, or `concurrency` at a time, the next when one ends. A request that fails is an error.
[[nodiscard]] Result<SideRun> run_side(Engine& engine, const std::vector<Request>& requests,
                                       std::optional<std::uint32_t> concurrency = {});

/// An error (kInternal) that names the first request whose tokens differ.
[[nodiscard]] Result<> same_output(const SideRun& run, const std::string& name, const SideRun& first,
                                   const std::string& first_name);

/// One timed run of a side.
using RunSide = std::function<Result<SideRun>(const Side& side)>;

/// [side][repeat]. A short request warms each side; then each repeat runs all sides, and the next one in reverse. An
/// error (kInternal) names the request if a run gives other tokens than the first run did.
[[nodiscard]] Result<std::vector<std::vector<SideRun>>> run_in_turn(const std::vector<Side>& sides,
                                                                    std::uint32_t repeats, const char* what,
                                                                    const RunSide& run);

/// Greedy, of exactly `output_tokens`; the prompt is the same in every process, and shares no prefix with another seed.
[[nodiscard]] Request bench_request(const ModelInfo& model, std::uint64_t seed, std::uint32_t prompt_tokens,
                                    std::uint32_t output_tokens);
/// One for each of the workload, whose arrivals and prefixes do not count.
[[nodiscard]] std::vector<Request> bench_requests(const ModelInfo& model, const Workload& workload);

/// The longest request, prompt and output; of all of them together, ends of blocks included.
[[nodiscard]] std::uint32_t longest(const Workload& workload);
[[nodiscard]] std::uint64_t pool_tokens(const Workload& workload, std::uint32_t block_tokens);

/// Bytes that a pool of so many tokens takes: what --kv-bytes would be.
[[nodiscard]] Result<std::uint64_t> pool_bytes(const EngineOptions& options, std::uint64_t tokens);

/// Best and median of one figure over the repeats.
struct Repeated {
  double best = 0, median = 0;
};
[[nodiscard]] Repeated fastest(const std::vector<SideRun>& runs, const std::function<double(const SideRun&)>& rate);
[[nodiscard]] Repeated shortest(const std::vector<SideRun>& runs, const std::function<double(const SideRun&)>& time);

/// How many times `figure` of `one` is that of `other`, repeat by repeat.
struct Gain {
  double median = 0, least = 0, most = 0;
};
[[nodiscard]] Gain gain(const std::vector<SideRun>& one, const std::vector<SideRun>& other,
                        const std::function<double(const SideRun&)>& figure);
[[nodiscard]] std::string gain_text(const Gain& gain);  // "2.31 (2.20 to 2.45)"

/// How much of a run's time its matrix products would take at the probed peak, or reading all weights once a step at
/// the probed bandwidth, whichever is more. Attention and KV are not counted.
class MachineShare {
 public:
  [[nodiscard]] static Result<MachineShare> make(const EngineReport& report, const ProbeReport& peaks,
                                                 Numerics numerics);
  [[nodiscard]] double of(const SideRun& run) const;
  [[nodiscard]] double best(const std::vector<SideRun>& runs) const;

 private:
  double ops_per_token_ = 0, ops_per_output_ = 0, ops_per_s_ = 0;
  double bytes_per_step_ = 0, bytes_per_s_ = 0;
};

}  // namespace octavo
