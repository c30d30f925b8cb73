// The linear contract on AVX2 for int8 activations.
//
// vpmaddubsw multiplies unsigned weights with signed activations into 16-bit pair sums. They are added in 16 bits,
// which may wrap on the way but not at the end: the accumulator starts at -offset * (sum of the lane's activations), so
// it ends at a sum of centred weights times activations, and that fits. Bounds, with |activation| <= 127 and 16
// products a 16-bit lane: Q4 unsigned 15 * 127 * 16 = 30480, Q5 centred 16 * 127 * 16 = 32512, MXFP4 centred
// 12 * 127 * 16 = 24384; 8 products a half of Q6 centred 32 * 127 * 8 = 32512, of Q3 4 * 127 * 8, of Q2 3 * 127 * 8.
// A pair itself must not saturate: the largest is Q6's, 2 * 63 * 127 = 16002. Bytes would: 2 * 255 * 127 > 32767.
// So Q8_0 and the places in kIq4Values, whose values + 128 are bytes, are split in two nibbles, 30480 and 8 * 127 * 16.
// One vpmaddwd then adds the two 16-bit lanes of an output.
#include "kernels/x86/gemm_int8_avx2.h"

namespace octavo::avx2 {
namespace {

OCTAVO_INLINE __m256i add_products(__m256i acc, __m256i weights, const std::int8_t* activations) {
  acc = _mm256_add_epi16(acc, _mm256_maddubs_epi16(weights, repeat32(activations)));
  asm("" : "+x"(acc));  // one register: g++ would gather all products first, add them as a tree and spill most of them
  return acc;
}

OCTAVO_INLINE __m256i sum_pairs(__m256i sums16) { return _mm256_madd_epi16(sums16, _mm256_set1_epi16(1)); }

/// Vector j of a format in bytes, split: its low nibbles are vector 2j, its high ones 2j + 1.
template <F f, int v>
OCTAVO_INLINE __m256i split_weights(const Byte* cell, int h) {
  constexpr int kShift = 4 * (v % 2);
  if constexpr (cell_layout(f).codes == Codes::kBytes) {
    return _mm256_and_si256(shift16<-kShift>(weights<f, v / 2>(cell, h)), _mm256_set1_epi8(15));
  } else {
    static constexpr ByteTable kTable = table_of(kIq4Values, cell_layout(f).offset, kShift, 15);
    return kTable.look_up(nibbles<v / 2>(cell + 32 * h));
  }
}

/// acc += vector j times the inputs 4j.. of R rows.
template <int j, int R, class Cell>
OCTAVO_INLINE void add_vector(const Cell& cell, const std::int8_t* q, __m256i (&acc)[R][2]) {
  const __m256i w[2] = {cell.template vector<j>(0), cell.template vector<j>(1)};
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) acc[r][h] = add_products(acc[r][h], w[h], q + kCellInputs * r + 4 * j);
  }
}

template <F f, int R, class Cell>
OCTAVO_INLINE void dot_up_to_five_bits(const Cell& cell, const Rows& x, __m256i (&isum)[R][2]) {
  // Five-bit weights are always centred, to stay in 16 bits; for formats with a min that is taken back below.
  constexpr int kCentre = cell_layout(f).codes == Codes::kNibblesBit ? 16 : cell_layout(f).offset;
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    isum[r][0] = kCentre == 0 ? _mm256_setzero_si256()
                              : _mm256_mullo_epi16(lane_sums(x.sum8 + 4 * r), _mm256_set1_epi16(-kCentre));
    isum[r][1] = isum[r][0];
  }
  add_vector<0>(cell, x.q, isum);  // pairs of vectors share their nibbles
  add_vector<4>(cell, x.q, isum);
  add_vector<1>(cell, x.q, isum);
  add_vector<5>(cell, x.q, isum);
  add_vector<2>(cell, x.q, isum);
  add_vector<6>(cell, x.q, isum);
  add_vector<3>(cell, x.q, isum);
  add_vector<7>(cell, x.q, isum);
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) isum[r][h] = sum_pairs(isum[r][h]);
    if constexpr (kCentre != cell_layout(f).offset) {
      const __m256i back = _mm256_madd_epi16(lane_sums(x.sum8 + 4 * r), _mm256_set1_epi16(kCentre));
      OCTAVO_UNROLL for (int h = 0; h < 2; ++h) isum[r][h] = _mm256_add_epi32(isum[r][h], back);
    }
  }
}

/// sc * isum of 16 inputs.
template <F f, int part, int R, class Cell>
OCTAVO_INLINE void dot_half(const Cell& cell, const Byte* scales, const Rows& x, __m256i (&isum)[R][2]) {
  constexpr int kOffset = cell_layout(f).offset;
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    isum[r][0] = kOffset == 0 ? _mm256_setzero_si256()
                              : _mm256_mullo_epi16(repeat32(x.sum8 + 4 * r + 2 * part), _mm256_set1_epi16(-kOffset));
    isum[r][1] = isum[r][0];
  }
  add_vector<4 * part>(cell, x.q, isum);
  add_vector<4 * part + 1>(cell, x.q, isum);
  add_vector<4 * part + 2>(cell, x.q, isum);
  add_vector<4 * part + 3>(cell, x.q, isum);
  OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
    const __m256i scale = twice(half_scale<f>(scales, part, h));
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) isum[r][h] = _mm256_madd_epi16(isum[r][h], scale);
  }
}

template <F f, int R, class Cell>
OCTAVO_INLINE void dot_halves(const Cell& cell, const Byte* scales, const Rows& x, __m256i (&isum)[R][2]) {
  dot_half<f, 0>(cell, scales, x, isum);
  __m256i second[R][2];
  dot_half<f, 1>(cell, scales, x, second);
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    OCTAVO_UNROLL for (int h = 0; h < 2; ++h) isum[r][h] = _mm256_add_epi32(isum[r][h], second[r][h]);
  }
}

template <int j, int R, class Cell>
OCTAVO_INLINE void add_byte_vector(const Cell& cell, int h, const std::int8_t* q, __m256i (&low)[R],
                                   __m256i (&high)[R]) {
  const __m256i w_low = cell.template vector<2 * j>(h), w_high = cell.template vector<2 * j + 1>(h);
  OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
    low[r] = add_products(low[r], w_low, q + kCellInputs * r + 4 * j);
    high[r] = add_products(high[r], w_high, q + kCellInputs * r + 4 * j);
  }
}

/// Bytes as two nibbles: w - 128 = 16 * (high - 8) + low; as bytes the products would saturate.
template <int R, class Cell>
OCTAVO_INLINE void dot_bytes(const Cell& cell, const Rows& x, __m256i (&isum)[R][2]) {
  OCTAVO_UNROLL for (int h = 0; h < 2; ++h) {
    const std::int8_t* q = x.q;
    asm volatile("" : "+r"(q));  // or g++ would keep the first half's broadcasts for the second, on the stack
    __m256i low[R], high[R];
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
      low[r] = _mm256_setzero_si256();
      high[r] = _mm256_mullo_epi16(lane_sums(x.sum8 + 4 * r), _mm256_set1_epi16(-8));
    }
    add_byte_vector<0>(cell, h, q, low, high);
    add_byte_vector<1>(cell, h, q, low, high);
    add_byte_vector<2>(cell, h, q, low, high);
    add_byte_vector<3>(cell, h, q, low, high);
    add_byte_vector<4>(cell, h, q, low, high);
    add_byte_vector<5>(cell, h, q, low, high);
    add_byte_vector<6>(cell, h, q, low, high);
    add_byte_vector<7>(cell, h, q, low, high);
    OCTAVO_UNROLL for (int r = 0; r < R; ++r) {
      isum[r][h] = _mm256_add_epi32(sum_pairs(low[r]), _mm256_madd_epi16(high[r], _mm256_set1_epi16(16)));
    }
  }
}

template <F f>
struct Maddubs {
  static constexpr F kFormat = f;
  static constexpr CellLayout kLayout = cell_layout(f);
  static constexpr bool kSplit = kLayout.offset == 128;
  static constexpr int kVectors = kSplit ? 16 : 8;

  template <int j>
  OCTAVO_INLINE static __m256i vector(const Byte* cell, int h) {
    if constexpr (kSplit) return split_weights<f, j>(cell, h);
    return weights<f, j>(cell, h);
  }

  template <int R, class Cell>
  OCTAVO_INLINE static void dot(const Cell& cell, const Byte* scales, const Rows& x, __m256i (&isum)[R][2]) {
    if constexpr (kSplit) {
      dot_bytes(cell, x, isum);
    } else if constexpr (kLayout.in_halves()) {
      dot_halves<f>(cell, scales, x, isum);
    } else {
      dot_up_to_five_bits<f>(cell, x, isum);
    }
  }
};

}  // namespace

void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
          std::uint32_t panel_begin, std::uint32_t panel_end) {
  gemm_blocks<Maddubs>(x, w, bias, y, ldy, panel_begin, panel_end);
}

}  // namespace octavo::avx2
