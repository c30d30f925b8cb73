// Shared by the AVX2 linear kernels. Internal linkage throughout: no other file may link a copy built for AVX2.
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

namespace octavo::avx2 {

/// BF16, F16 and F32 weights: the part of `gemm` in gemm_float_avx2.cc.
void gemm_float(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
                std::uint32_t panel_begin, std::uint32_t panel_end);

namespace {

/// Where one panel's outputs go: y of the first row, its bias, how many of its 16 lanes exist.
struct Output {
  float* y;
  std::uint64_t ldy;
  const float* bias;
  std::uint32_t lanes;
};

OCTAVO_INLINE Output output_of(std::uint32_t panel, std::uint32_t n, const float* bias, float* y, std::uint64_t ldy) {
  const std::uint32_t first = panel * kPanelLanes;
  const std::uint32_t left = n - first;
  return {y + first, ldy, bias == nullptr ? nullptr : bias + first, left < kPanelLanes ? left : kPanelLanes};
}

/// Lanes [8 * half, ...) that exist, as a mask for maskload and maskstore.
OCTAVO_INLINE __m256i lane_mask(std::uint32_t lanes, int half) {
  const __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(8 * half));
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(lanes)), lane);
}

template <int R>
OCTAVO_INLINE void store_rows(const Output& out, std::uint32_t row, const __m256 (&acc)[R][2]) {
  for (int h = 0; h < 2; ++h) {
    const __m256i mask = lane_mask(out.lanes, h);
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
      __m256 value = acc[r][h];
      if (out.bias != nullptr) value = _mm256_add_ps(value, _mm256_maskload_ps(out.bias + 8 * h, mask));
      _mm256_maskstore_ps(out.y + (row + r) * out.ldy + 8 * h, mask, value);
    }
  }
}

}  // namespace
}  // namespace octavo::avx2
