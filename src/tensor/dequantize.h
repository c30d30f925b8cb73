// Byte-exact de-quantisation: the values that the `gguf` Python package gives. Denormals are on here (MXFP4 scales),
// so callers must not hold a FloatMode.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tensor/tensor_type.h"

namespace octavo {

/// `count` elements (a multiple of the block size) from `blocks` to `out`. `blocks` needs no alignment.
void dequantize(TensorType type, const std::byte* blocks, std::uint64_t count, float* out);

[[nodiscard]] float f16_to_f32(std::uint16_t half);    // exact, subnormals too
[[nodiscard]] std::uint16_t f32_to_f16(float value);   // round to nearest even
[[nodiscard]] float bf16_to_f32(std::uint16_t bf16);   // exact
[[nodiscard]] std::uint16_t f32_to_bf16(float value);  // nearest even; denormals to signed zero, NaN quieted

}  // namespace octavo
