// What a client may ask of the sampler. Values outside are refused with field, value and limit, never clamped.
#pragma once
#include <cstdint>

#include "octavo/request.h"
#include "octavo/result.h"

namespace octavo {

[[nodiscard]] Result<> validate(const SamplingParams& params, std::uint32_t vocab_size);

}  // namespace octavo
