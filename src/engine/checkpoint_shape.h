// A checkpoint as its sizes: what read_model_shape() says of it, from the very plan that packs it.
#pragma once
#include "model/checkpoint.h"
#include "octavo/model_shape.h"

namespace octavo {

[[nodiscard]] ModelShape shape_of(const Checkpoint& checkpoint, Numerics numerics);

}  // namespace octavo
