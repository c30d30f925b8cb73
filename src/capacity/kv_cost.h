// What one step's bookkeeping takes of the clock: see octavo/kv_bench.h.
#pragma once
#include <cstdint>
#include <span>

#include "kv/kv_types.h"
#include "octavo/kv_bench.h"

namespace octavo {

[[nodiscard]] KvCostRow measure_cost(std::uint32_t running, bool prefix_caching, std::span<const GroupSpec> groups);

}  // namespace octavo
