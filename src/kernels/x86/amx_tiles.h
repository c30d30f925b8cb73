// AMX tile instructions, one function each. Own assembly, because GCC 12's intrinsics tell the compiler too little: its
// _tile_loadconfig reads 8 bytes of 64, and its _tile_loadd no memory at all.
//
// A thread loads a configuration before its first tile instruction and releases it after the last: tiles that are in
// use make every switch of threads dearer.
#ifndef OCTAVO_KERNELS_X86_AMX_TILES_H  // not #pragma once: tests put a model of the tiles in its place
#define OCTAVO_KERNELS_X86_AMX_TILES_H
#include <cstdint>

#include "kernels/x86/amx_tile_shapes.h"

namespace octavo::amx {

namespace {

[[gnu::always_inline]] inline void use_tiles(const TileShapes& shapes) { asm volatile("ldtilecfg %0" : : "m"(shapes)); }
[[gnu::always_inline]] inline void release_tiles() { asm volatile("tilerelease"); }

template <int tile>
[[gnu::always_inline]] inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}
/// Rows of the tile lie `stride` bytes apart.
template <int tile>
[[gnu::always_inline]] inline void tile_load(const void* from, std::uint64_t stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(tile), "r"(from), "r"(stride) : "memory");
}
template <int tile>
[[gnu::always_inline]] inline void tile_store(void* to, std::uint64_t stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(tile), "r"(to), "r"(stride) : "memory");
}
/// sums[m][n] += a[m][4k + i] * b[k][4n + i] in 32-bit integers, signed bytes.
template <int sums, int a, int b>
[[gnu::always_inline]] inline void tile_dot_int8() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
}
/// The tile-32 order of the numerics contract: sums[m][n] += (chain over even) + (chain over odd k) of a[m][k] *
/// b[k][n].
template <int sums, int a, int b>
[[gnu::always_inline]] inline void tile_dot_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
}

}  // namespace
}  // namespace octavo::amx

#endif
