// The linear contract on AVX-VNNI (256 bits, CPUs without AVX-512) for int8 activations.
//
// vpdpbusd multiplies four unsigned weights with four signed activations per lane and adds in 32 bits without
// saturation, so no sum needs a bound: at most 32 * 255 * 127. It starts at -offset * (sum of the activations).
#include "kernels/x86/gemm_int8_avx2.h"

namespace octavo::avx2 {
namespace {

/// acc += vector j times the inputs 4j.. of R rows.
template <int j, int R, class Cell>
OCTAVO_INLINE void dot_vector(const Cell& cell, const std::int8_t* q, __m256i (&acc)[R][2]) {
  const __m256i w[2] = {cell.template vector<j>(0), cell.template vector<j>(1)};
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    const __m256i activations = repeat32(q + kCellInputs * r + 4 * j);
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) acc[r][h] = _mm256_dpbusd_avx_epi32(acc[r][h], w[h], activations);
  }
}

template <F f>
struct Dpbusd {
  static constexpr F kFormat = f;
  static constexpr CellLayout kLayout = cell_layout(f);
  static constexpr int kVectors = 8;

  template <int j>
  OCTAVO_INLINE static __m256i vector(const Byte* cell, int h) {
    return weights<f, j>(cell, h);
  }

  template <int R, class Cell>
  OCTAVO_INLINE static void dot(const Cell& cell, const Byte* scales, const Rows& x, __m256i (&isum)[R][2]) {
    if constexpr (kLayout.in_halves()) {
      dot_half<0>(cell, scales, x, isum);
      __m256i second[R][2];
      dot_half<1>(cell, scales, x, second);
      OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
        OCTAVO_UNROLL for (int h = 0; h < 2; ++h) isum[r][h] = _mm256_add_epi32(isum[r][h], second[r][h]);
      }
    } else {
      OCTAVO_UNROLL for (int r = 0; r < R; ++r) isum[r][0] = isum[r][1] = start(lane_sums(x.sum8 + 4 * r));
      dot_vectors<0>(cell, x.q, isum);
      dot_vectors<4>(cell, x.q, isum);
    }
  }

 private:
  OCTAVO_INLINE static __m256i start(__m256i sums) {
    if constexpr (kLayout.offset == 0) return _mm256_setzero_si256();
    return _mm256_madd_epi16(sums, _mm256_set1_epi16(-kLayout.offset));
  }

  template <int j, int R, class Cell>
  OCTAVO_INLINE static void dot_vectors(const Cell& cell, const std::int8_t* q, __m256i (&isum)[R][2]) {
    dot_vector<j>(cell, q, isum);
    dot_vector<j + 1>(cell, q, isum);
    dot_vector<j + 2>(cell, q, isum);
    dot_vector<j + 3>(cell, q, isum);
  }

  /// sc * isum of 16 inputs.
  template <int part, int R, class Cell>
  OCTAVO_INLINE static void dot_half(const Cell& cell, const Byte* scales, const Rows& x, __m256i (&isum)[R][2]) {
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) isum[r][0] = isum[r][1] = start(repeat32(x.sum8 + 4 * r + 2 * part));
    dot_vectors<4 * part>(cell, x.q, isum);
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
      const __m256i scale = half_scale<f>(scales, part, h);
      OCTAVO_UNROLL for (int r = 0; r < R; ++r) isum[r][h] = _mm256_mullo_epi32(isum[r][h], scale);
    }
  }
};

}  // namespace
}  // namespace octavo::avx2

namespace octavo::avxvnni {

void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
          std::uint32_t panel_begin, std::uint32_t panel_end) {
  avx2::gemm_blocks<avx2::Dpbusd>(x, w, bias, y, ldy, panel_begin, panel_end);
}

}  // namespace octavo::avxvnni
