// Frequencies of the rotary position embedding.
#pragma once
#include <vector>

#include "model/spec.h"

namespace octavo {

/// rot_dims / 2 inverse frequencies. The power is our own, in double (no libm: the same bits everywhere), and is
/// rounded to f32 before the division, as Hugging Face's float32 computation rounds; scaling is float32 in its order,
/// too.
[[nodiscard]] std::vector<float> inv_freq(const RopeSpec& rope);

}  // namespace octavo
