// The scratch of an attention task, as the vector kernels lay it out. Bits depend on none of it.
//
// In floats, with T rows a tile: for one tile the scores [T][256] and the split's states [T][attn_state_floats]; for
// all rows q [tiles][head_dim][T], rounded as the scores want it, and [m, l].
#pragma once
#include "kernels/kernels.h"

namespace octavo {

inline constexpr std::uint32_t kMostQueryTileRows = 16;  // (token, query head) pairs; each table has its own T

}  // namespace octavo
