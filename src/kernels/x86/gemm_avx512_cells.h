// Cells of the block formats and prepared rows, as AVX-512 registers: weights as unsigned bytes, and their factors.
#pragma once
#include "kernels/x86/gemm_avx512.h"
#include "tensor/quant_blocks.h"

namespace octavo::avx512 {
namespace {

using Byte = std::uint8_t;
using F = WeightFormat;

/// Prepared rows from one row of a tile on, at one block of 32 inputs; the next block is kTileRows slots further.
struct Rows {
  const std::int8_t* q;
  const std::int16_t* sum8;
  const float* scale;
  const float* scaled_sum;

  OCTAVO_INLINE void next_block() {
    q += kTileRows * kCellInputs;
    sum8 += kTileRows * 4;
    scale += kTileRows;
    scaled_sum += kTileRows;
  }
};

OCTAVO_INLINE Rows rows_at(const ActRows& x, std::uint32_t row, std::uint32_t block = 0) {
  const std::size_t slot = (std::size_t{row / kTileRows} * (x.k / kCellInputs) + block) * kTileRows + row % kTileRows;
  return {x.q + slot * kCellInputs, x.sum8 + slot * 4, x.scale + slot, x.scaled_sum + slot};
}

OCTAVO_INLINE __m512i load(const Byte* p) { return _mm512_load_si512(p); }

/// Byte vector (v shifted left by kLeft bits) & mask; mask keeps what neighbours shift in out.
template <int kLeft>
OCTAVO_INLINE __m512i shift_mask(__m512i v, int mask) {
  if constexpr (kLeft > 0) v = _mm512_slli_epi16(v, kLeft);
  if constexpr (kLeft < 0) v = _mm512_srli_epi16(v, -kLeft);
  return _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(mask)));
}

/// A byte for each nibble: value + offset.
struct ByteTable {
  alignas(16) Byte bytes[16];

  OCTAVO_INLINE __m512i look_up(__m512i nibbles) const {
    const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), nibbles);
  }
};

constexpr ByteTable table_of(const std::int8_t (&values)[16], int offset) {
  ByteTable table{};
  for (int i = 0; i < 16; ++i) table.bytes[i] = static_cast<Byte>(values[i] + offset);
  return table;
}

template <int j>
OCTAVO_INLINE __m512i nibbles(const Byte* p) {
  return shift_mask<-4 * (j / 4)>(load(p + 64 * (j % 4)), 15);
}
/// Vector j's bit, or pair of bits, at `place`.
template <int j, int place>
OCTAVO_INLINE __m512i bits(const Byte* p) {
  return shift_mask<place - j>(load(p), 1 << place);
}
template <int j, int place>
OCTAVO_INLINE __m512i bit_pairs(const Byte* p) {
  return shift_mask<place - 2 * (j % 4)>(load(p + 64 * (j / 4)), 3 << place);
}

OCTAVO_INLINE __m512i joined(__m512i a, __m512i b) { return _mm512_or_si512(a, b); }

/// Vector j of a cell as unsigned bytes.
template <F f, int j>
OCTAVO_INLINE __m512i weights(const Byte* cell) {
  constexpr CellLayout kLayout = cell_layout(f);
  switch (kLayout.codes) {
    case Codes::kNibbles: break;
    case Codes::kNibblesBit: return joined(nibbles<j>(cell), bits<j, 4>(cell + 256));
    case Codes::kNibblesPairs: return joined(nibbles<j>(cell), bit_pairs<j, 4>(cell + 256));
    case Codes::kBytes: return load(cell + 64 * j);
    case Codes::kIq4Nibbles: {
      static constexpr ByteTable kTable = table_of(kIq4Values, kLayout.offset);
      return kTable.look_up(nibbles<j>(cell));
    }
    case Codes::kFp4Nibbles: {
      static constexpr ByteTable kTable = table_of(kFp4Values, kLayout.offset);
      return kTable.look_up(nibbles<j>(cell));
    }
    case Codes::kPairs: return bit_pairs<j, 0>(cell);
    case Codes::kPairsBit: return joined(bit_pairs<j, 0>(cell), bits<j, 2>(cell + 128));
  }
  return nibbles<j>(cell);
}

OCTAVO_INLINE __m512 f16_lanes(const Byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
OCTAVO_INLINE __m128i bytes_at(const Byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
OCTAVO_INLINE __m512i u8_lanes(const Byte* p) { return _mm512_cvtepu8_epi32(bytes_at(p)); }
OCTAVO_INLINE __m512i i8_lanes(const Byte* p) { return _mm512_cvtepi8_epi32(bytes_at(p)); }
OCTAVO_INLINE __m512i low_nibbles(__m512i lanes) { return _mm512_and_si512(lanes, _mm512_set1_epi32(15)); }

/// 2^(e - 128), or 0 instead of a denormal.
OCTAVO_INLINE __m512 e8m0_lanes(const Byte* p) {
  const __m128i exponent = _mm_subs_epu8(bytes_at(p), _mm_set1_epi8(1));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(exponent), 23));
}

OCTAVO_INLINE __m512 minus(__m512 v) { return _mm512_xor_ps(v, _mm512_set1_ps(-0.0F)); }
OCTAVO_INLINE __m512 times(__m512 v, __m512i integers) { return _mm512_mul_ps(v, _mm512_cvtepi32_ps(integers)); }

/// A cell's factors: acc = fma(isum, scale * x.scale, acc), then acc = fma(min, x.scaled_sum, acc).
struct Factors {
  __m512 scale, min;
  __m512i half_scale[2];  // of 16 inputs each
  __m512i half_min[2];    // the same, both 16-bit halves of each lane: acc = fma(their sum, min * x.scale, acc)
};

template <F f>
OCTAVO_INLINE Factors factors_of(const Byte* group, const Byte* own) {
  Factors out;
  out.min = _mm512_setzero_ps();
  out.half_scale[0] = out.half_scale[1] = out.half_min[0] = out.half_min[1] = _mm512_setzero_si512();
  switch (cell_layout(f).scales) {
    case Scales::kF16: out.scale = f16_lanes(own); break;
    case Scales::kF16Min:
      out.scale = f16_lanes(own);
      out.min = f16_lanes(own + 32);
      break;
    case Scales::kE8m0: out.scale = e8m0_lanes(own); break;
    case Scales::kSuper: out.scale = times(f16_lanes(group), i8_lanes(own)); break;
    case Scales::kSuperMin:
      out.scale = times(f16_lanes(group), u8_lanes(own));
      out.min = times(minus(f16_lanes(group + 32)), u8_lanes(own + 16));
      break;
    case Scales::kHalves:
      out.scale = f16_lanes(group);
      for (int part = 0; part < 2; ++part) out.half_scale[part] = i8_lanes(own + 16 * part);
      break;
    case Scales::kHalvesMin:
      out.scale = f16_lanes(group);
      out.min = minus(f16_lanes(group + 32));
      for (int part = 0; part < 2; ++part) {
        const __m512i both = u8_lanes(own + 16 * part);
        out.half_scale[part] = low_nibbles(both);
        const __m512i min = _mm512_srli_epi32(both, 4);
        out.half_min[part] = _mm512_or_si512(min, _mm512_slli_epi32(min, 16));
      }
      break;
  }
  return out;
}

}  // namespace
}  // namespace octavo::avx512
