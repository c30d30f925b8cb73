// What measure_steps found, and the steps since have taught, kept beside a model's pack: timing a large model's steps
// takes longer than starting it.
//
// One small text file per pack, processor, kernels, thread count and KV form. It goes with its pack.
#pragma once
#include <optional>
#include <string>

#include "engine/measure_steps.h"
#include "octavo/engine.h"

namespace octavo {

/// Where the measurement of an engine like this one is; empty: its weights are in memory, and nothing is kept.
[[nodiscard]] std::string step_memo_path(const EngineReport& report);

/// None: there is no such file, it is older than this program, or holds nothing that a measurement could be.
[[nodiscard]] std::optional<StepMeasurement> recall_steps(const std::string& path);
/// Nothing where `path` is empty. A file that cannot be written costs the next start its time.
void remember_steps(const std::string& path, const StepMeasurement& measured);

}  // namespace octavo
