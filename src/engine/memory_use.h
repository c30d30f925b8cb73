// What an engine really takes, by the tags of its plan.
#pragma once
#include <vector>

#include "octavo/engine.h"

namespace octavo {

struct EngineResources;

/// Walks the process's mappings. Any thread.
[[nodiscard]] std::vector<MemoryUse> memory_use(const EngineResources& r);

}  // namespace octavo
