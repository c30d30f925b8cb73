// `octavo plan --check`: the load for real on the loaded model, at three rates, beside what was predicted.
//
// The prediction comes first, from a profile that is older than the run, and nothing is fitted to what is measured.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/jsonl.h"
#include "cli/plan_load.h"
#include "octavo/engine.h"

namespace octavo {

/// One run of a workload against an engine.
struct MeasuredLoad {
  Spectrum ttft_ms, tpot_ms, itl_ms, e2e_ms;
  double seconds = 0, output_tokens_per_s = 0;
  std::uint64_t answered = 0, refused = 0;
  std::uint64_t kv_peak_bytes = 0;  // owned blocks, at the ends of steps
  std::uint64_t rss_peak_bytes = 0;
};

/// Submits every request at its time (or so many at a time), waits for all of them. `steps` are looked at all along.
[[nodiscard]] Result<MeasuredLoad> run_load(Engine& engine, const Workload& workload, std::uint64_t seed);

/// A figure, and whether the two are as near as they should be.
struct CheckedFigure {
  std::string name;
  double predicted = 0, measured = 0;
  double bound = 0;      // relative
  double allowance = 0;  // absolute, where that is more
  [[nodiscard]] double error() const { return measured != 0 ? predicted / measured - 1 : predicted == 0 ? 0 : 1; }
  [[nodiscard]] bool kept() const;
};

struct CheckedLevel {
  std::string name;  // "0.5 of capacity"
  double rate = 0;   // requests per second
  SimulateReport predicted;
  MeasuredLoad measured;
  std::vector<CheckedFigure> figures;
};

struct CheckReport {
  std::string machine_hash, measured_at;  // of the profile
  bool steps_measured = false;            // on this model
  double capacity = 0;                    // predicted requests per second with all of them there at once
  std::vector<CheckedLevel> levels;
};

/// Loads options' model and runs. `planned_rss`: of the memory plan.
[[nodiscard]] Result<CheckReport> check_plan(const ModelShape& model, const EngineOptions& engine, std::uint64_t memory,
                                             std::uint64_t planned_rss, const LoadOptions& options);

void print_check(const CheckReport& report);
[[nodiscard]] Json to_json(const CheckReport& report);

}  // namespace octavo
