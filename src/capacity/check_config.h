// What an engine's settings must keep to before anything is built. Every refusal names flag, value and limit.
#pragma once
#include <cstdint>

#include "octavo/config.h"
#include "octavo/result.h"

namespace octavo {

/// `context_length`: the model's.
[[nodiscard]] Result<> check_config(const EngineConfig& config, std::uint32_t context_length);

}  // namespace octavo
