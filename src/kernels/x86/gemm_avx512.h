// Shared by the AVX-512 linear kernels. Internal linkage throughout: no other file may link a copy built for AVX-512.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/entries.h"
#include "kernels/gemm.h"

#ifdef __clang__
#define OCTAVO_UNROLL _Pragma("unroll")
#else
#define OCTAVO_UNROLL _Pragma("GCC unroll 16")
#endif
#define OCTAVO_INLINE [[gnu::always_inline]] inline

namespace octavo::avx512 {

/// BF16, F16 and F32 weights: the part of `gemm` in gemm_float_avx512.cc.
void gemm_float(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
                std::uint32_t panel_begin, std::uint32_t panel_end);

namespace {

/// Where one panel's outputs go: y of the first row, its bias, which of its 16 lanes exist.
struct Output {
  float* y;
  std::uint64_t ldy;
  const float* bias;
  __mmask16 lanes;
};

OCTAVO_INLINE Output output_of(std::uint32_t panel, std::uint32_t n, const float* bias, float* y, std::uint64_t ldy) {
  const std::uint32_t first = panel * kPanelLanes;
  const std::uint32_t left = n - first;
  const __mmask16 lanes = static_cast<__mmask16>(left < kPanelLanes ? (1U << left) - 1 : 0xFFFFU);
  return {y + first, ldy, bias == nullptr ? nullptr : bias + first, lanes};
}

template <int R>
OCTAVO_INLINE void store_rows(const Output& out, std::uint32_t row, const __m512 (&acc)[R]) {
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    __m512 value = acc[r];
    if (out.bias != nullptr) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(out.lanes, out.bias));
    _mm512_mask_storeu_ps(out.y + (row + r) * out.ldy, out.lanes, value);
  }
}

constexpr std::uint32_t kRowBlock = 128;

/// Rows in blocks that stay in the second-level cache, panels inside, 8 rows at a time and then the rest:
/// calls tile.run<rows>(first row, panel, output).
template <class Tile>
OCTAVO_INLINE void for_each_tile(const ActRows& x, const PackedMatrix& w, const float* bias, float* y,
                                 std::uint64_t ldy, std::uint32_t panel_begin, std::uint32_t panel_end,
                                 const Tile& tile) {
  for (std::uint32_t begin = 0; begin < x.m; begin += kRowBlock) {
    const std::uint32_t end = x.m - begin < kRowBlock ? x.m : begin + kRowBlock;
    for (std::uint32_t p = panel_begin; p < panel_end; ++p) {
      const auto* panel = reinterpret_cast<const std::uint8_t*>(w.panels) + p * w.panel_bytes;
      const Output out = output_of(p, w.n, bias, y, ldy);
      std::uint32_t row = begin;
      for (; row + 8 <= end; row += 8) tile.template run<8>(row, panel, out);
      if (end - row >= 4) {
        tile.template run<4>(row, panel, out);
        row += 4;
      }
      switch (end - row) {
        case 3: tile.template run<3>(row, panel, out); break;
        case 2: tile.template run<2>(row, panel, out); break;
        case 1: tile.template run<1>(row, panel, out); break;
        default: break;
      }
    }
  }
}

}  // namespace
}  // namespace octavo::avx512
