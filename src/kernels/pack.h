// From a file's row-major blocks to N16 panels (layout: kernels/gemm.h). A type's own format keeps every value.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tensor/packed.h"
#include "tensor/tensor_type.h"

namespace octavo {

/// The format of a tensor type's panels.
[[nodiscard]] WeightFormat packed_format_of(TensorType type);
[[nodiscard]] std::uint64_t panel_bytes(WeightFormat format, std::uint32_t k);

/// Packs panels [panel_begin, panel_end) of a matrix [n, k] stored as rows of `type` blocks; k is a multiple of the
/// type's block size. `format` is packed_format_of(type), kF32 (exact) or kBF16 (rounded).
/// `out` is the start of panel 0. Callers must not hold a FloatMode (see tensor/dequantize.h).
void pack_panels(TensorType type, const std::byte* rows, std::uint32_t n, std::uint32_t k, WeightFormat format,
                 std::uint32_t panel_begin, std::uint32_t panel_end, std::byte* out);

}  // namespace octavo
