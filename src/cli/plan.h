// octavo plan: what was asked, and the parts that answer. plan.cc parses and runs, plan_print.cc shows.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "cli/common.h"
#include "cli/jsonl.h"
#include "cli/plan_load.h"
#include "octavo/model_shape.h"
#include "octavo/planner.h"

namespace octavo {

struct PlanOptions {
  EngineOptions engine;  // its model too
  std::optional<std::uint64_t> memory;
  std::optional<std::uint32_t> batch, length;
  std::string weights_format;
  LoadOptions load;
  bool check = false;
  std::string html;  // a file
  bool explain = false, json = false;
};

/// The model's sizes and the question that `options` ask of them.
struct PlanCase {
  ModelShape model;
  MemoryQuestion question;
};
[[nodiscard]] Result<PlanCase> plan_case(const PlanOptions& options);

void print_plan(const PlanCase& plan_case, const MemoryPlan& plan);
[[nodiscard]] Json plan_json(const PlanCase& plan_case, const MemoryPlan& plan);

}  // namespace octavo
