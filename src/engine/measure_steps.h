// Real steps on the real model, timed before the engine takes its first request: what StepTime starts from.
#pragma once
#include <cstdint>

#include "kv/kv_store.h"
#include "model/forward.h"
#include "sched/step_time.h"

namespace octavo {

struct StepMeasurement {
  StepCosts costs;
  Nanos copy_per_block{};  // a whole block, memory to memory
  bool complete = false;   // no limit of this engine cut a step short: good for others of the same machine and model
};

/// Runs a handful of small steps, several times where that takes less than half a second, and keeps the best times.
/// Uses the first blocks of the store and leaves all of it zero. `time` says what a row is worth as work (its costs are
/// not read). Thread: the caller's, as Model::forward.
[[nodiscard]] StepMeasurement measure_steps(Model& model, KvStore& store, std::uint32_t num_blocks,
                                            const ForwardLimits& limits, const StepTime& time);

}  // namespace octavo
