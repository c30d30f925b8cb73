// What the buffers of a step take, before there is a model: pure arithmetic on sizes, and the very sums that Model's
// constructor allocates by.
#pragma once
#include <cstdint>

#include "model/spec.h"
#include "octavo/model_shape.h"

namespace octavo {

struct ForwardLimits {
  std::uint32_t max_tokens = 512;     // m of a step
  std::uint32_t max_logit_rows = 64;  // rows of one logits() call
  std::uint32_t max_positions = 0;    // length of the rope tables
};

inline constexpr std::uint32_t kMaxLogitRows = 64;  // of one logits() call of an engine

/// Step buffers, prepared rows and rope tables. `act_kinds`: a bit per ActKind that any matrix multiplies with.
[[nodiscard]] std::uint64_t activation_bytes(const ModelSpec& spec, std::uint32_t act_kinds,
                                             const ForwardLimits& limits, std::uint32_t threads);

/// The same from sizes alone. A model that is not supported is taken for a dense one of its sizes.
[[nodiscard]] std::uint64_t activation_bytes(const ModelShape& shape, const ForwardLimits& limits,
                                             std::uint32_t threads);

/// Widest and longest rows that are ever prepared for a product.
[[nodiscard]] std::uint32_t max_width(const ModelSpec& spec);
[[nodiscard]] std::uint32_t max_rows(const ForwardLimits& limits);
[[nodiscard]] std::uint64_t rope_bytes(const RopeSpec& rope, const ForwardLimits& limits);

}  // namespace octavo
