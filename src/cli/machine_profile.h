// Measuring what a machine profile holds: the machine's part by single kernels, a model's part by steps of its own.
#pragma once
#include <cstdint>

#include "cli/common.h"
#include "octavo/engine.h"
#include "octavo/profile.h"
#include "octavo/result.h"

namespace octavo {

/// About a minute, with progress on stderr. `models` is left empty.
[[nodiscard]] Result<MachineProfile> measure_machine(std::uint32_t threads);

/// About a minute for a small model: prompts of many lengths, decode of several widths and depths, each several
/// times. The engine is idle, its prefix cache off.
[[nodiscard]] Result<ModelProfile> measure_model(Engine& engine, Numerics numerics);

/// What measure_model() needs of an engine; all else stays as `options` have it.
void prepare_for_profile(EngineConfig& config);

}  // namespace octavo
