// Frequencies of the rotary position embedding.
#pragma once
#include <vector>

#include "model/spec.h"

namespace octavo {

/// rot_dims / 2 inverse frequencies, in float32 and in the order of Hugging Face's computation, without libm: the same
/// bits everywhere.
[[nodiscard]] std::vector<float> inv_freq(const RopeSpec& rope);

}  // namespace octavo
