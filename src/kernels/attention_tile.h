// How the vector kernels cut an attention task and lay out its scratch. Bits depend on none of it.
//
// Scratch, in floats: for one tile of rows the scores [kTileRows][256] and the split's states
// [kTileRows][attn_state_floats]; for all rows q [tiles][head_dim][kTileRows], rounded as the scores want it, and [m,
// l].
#pragma once
#include "kernels/kernels.h"

namespace octavo {

inline constexpr std::uint32_t kTileRows = 12;  // (token, query head) pairs

}  // namespace octavo
