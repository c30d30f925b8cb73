// The part of `octavo plan` that knows a load: what a workload meets on this machine, simulated.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arrival_options.h"
#include "cli/jsonl.h"
#include "octavo/simulate.h"
#include "octavo/workload.h"

namespace octavo {

struct LoadOptions : ArrivalOptions {  // an empty workload: no load was asked about
  std::string goal;                    // "ttft=500,tpot=50"
  std::string machine;                 // a profile's file; empty: this machine's own
  bool search = false, what_if = false;
};

void add_load_options(CLI::App& app, LoadOptions& options);

/// All that was asked about a load.
struct LoadPlan {
  Workload workload;
  std::string machine_file;
  MachineProfile machine;
  StepCosting costing;
  ServiceGoal goal;
  SimulateReport report;
  std::vector<WhatIf> what_if;
  std::optional<RateSearch> search;
  struct CachePoint {
    std::uint64_t blocks = 0;
    double hit_share = 0;
  };
  std::vector<CachePoint> prefix_hits;  // by size of the cache; empty: no prompt shares anything
};

[[nodiscard]] Result<LoadPlan> plan_load(const ModelShape& model, const EngineConfig& engine, std::uint64_t memory,
                                         const LoadOptions& options);

void print_load(const LoadPlan& plan);
[[nodiscard]] Json to_json(const LoadPlan& plan);
[[nodiscard]] Json to_json(const SimulateReport& report);

}  // namespace octavo
