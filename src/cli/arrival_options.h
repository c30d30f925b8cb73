// Options of commands that take a workload, and what a request must keep to be good.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "octavo/simulate.h"
#include "octavo/workload.h"

namespace octavo {

struct ArrivalOptions {
  std::string workload;
  Arrivals arrivals;
  std::uint32_t duration_s = 0;  // 0: not given

  [[nodiscard]] Arrivals asked() const;  // the duration with the others
};

/// --rate, --burstiness, --concurrency, --requests, --duration, --seed.
void add_arrival_options(CLI::App& app, ArrivalOptions& options);

/// "ttft=500,tpot=50,e2e=10000", milliseconds each; errors name the part. Empty: no limit.
[[nodiscard]] Result<ServiceGoal> parse_goal(const std::string& text);

}  // namespace octavo
