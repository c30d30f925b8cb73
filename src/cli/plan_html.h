// `octavo plan --html`: the whole plan as one page.
#pragma once
#include <string>

#include "cli/plan_check.h"
#include "cli/plan_load.h"
#include "octavo/planner.h"
#include "octavo/result.h"

namespace octavo {

/// `load` and `check` may be nullptr.
[[nodiscard]] Result<> write_plan_page(const std::string& path, const ModelShape& model, const MemoryQuestion& question,
                                       const MemoryPlan& memory, const LoadPlan* load, const CheckReport* check);

}  // namespace octavo
