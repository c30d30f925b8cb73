// How the vector kernels cut an attention task and lay out its scratch. Bits depend on none of it.
//
// Scratch, in floats: for one tile of rows the scores [kQueryTileRows][256] and the split's states
// [kQueryTileRows][attn_state_floats]; for all rows q [tiles][head_dim][kQueryTileRows], rounded as the scores want it,
// and [m, l].
#pragma once
#include "kernels/kernels.h"

namespace octavo {

inline constexpr std::uint32_t kQueryTileRows = 12;  // (token, query head) pairs

}  // namespace octavo
