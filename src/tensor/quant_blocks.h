// The blocks of ggml's quantised types as they lie in a file. A file may hold them at any address: copy a block out
// (std::memcpy) rather than point at it.
//
// d and min are f16 bits. In 32-element blocks, element j has the low nibble of qs[j], element 16 + j the high one.
// K-quants are super-blocks of 256 elements with small integer scales per 16 or 32.
#pragma once
#include <cstdint>

namespace octavo {

using F16Bits = std::uint16_t;

struct BlockQ4_0 {  // (q - 8) * d
  F16Bits d;
  std::uint8_t qs[16];
};

struct BlockQ4_1 {  // q * d + min
  F16Bits d, min;
  std::uint8_t qs[16];
};

struct BlockQ5_0 {  // (q - 16) * d; bit j of qh (little-endian) is the fifth bit of element j
  F16Bits d;
  std::uint8_t qh[4], qs[16];
};

struct BlockQ5_1 {  // q * d + min
  F16Bits d, min;
  std::uint8_t qh[4], qs[16];
};

struct BlockQ8_0 {  // q * d
  F16Bits d;
  std::int8_t qs[32];
};

struct BlockQ2_K {                  // q * (d * scale) - min * offset; per 16: scale = low nibble, offset = high nibble
  std::uint8_t scales[16], qs[64];  // qs: two runs of 32 bytes, each four times 32 elements by bit pairs
  F16Bits d, min;
};

struct BlockQ3_K {         // (q - 4 * !high) * (d * (scale - 32)); scales are 6-bit, per 16
  std::uint8_t hmask[32];  // bit i of byte j: the high bit of element 32 * i + j
  std::uint8_t qs[64];     // as Q2_K
  std::uint8_t scales[12];
  F16Bits d;
};

struct BlockQ4_K {  // q * (d * scale) - min * offset; scale and offset are 6-bit, per 32
  F16Bits d, min;
  std::uint8_t scales[12],
      qs[128];  // qs: four runs of 32 bytes, the low nibbles are 32 elements, the high ones 32 more
};

struct BlockQ5_K {  // as Q4_K; bit i of qh[j] is the fifth bit of element 32 * i + j
  F16Bits d, min;
  std::uint8_t scales[12], qh[32], qs[128];
};

struct BlockQ6_K {               // (q - 32) * (d * scale), scale per 16
  std::uint8_t ql[128], qh[64];  // two halves of 128 elements: 64 bytes of ql (low nibbles, then high), 32 of qh
  std::int8_t scales[16];
  F16Bits d;
};

struct BlockIQ4_NL {  // kIq4Values[q] * d
  F16Bits d;
  std::uint8_t qs[16];
};

struct BlockIQ4_XS {  // kIq4Values[q] * (d * (scale - 32)); scale is 6-bit, per 32
  F16Bits d;
  std::uint16_t scales_high;  // bit pairs
  std::uint8_t scales_low[4], qs[128];
};

struct BlockMXFP4 {  // kFp4Values[q] * 2^(e - 128)
  std::uint8_t e, qs[16];
};

inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr std::int8_t kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};  // doubled

struct ScaleMin {
  std::uint8_t scale, min;
};
/// The 6-bit scale and offset of sub-block i (of 8) of a Q4_K or Q5_K block.
[[nodiscard]] constexpr ScaleMin k_scale_min(const std::uint8_t (&scales)[12], int i) {
  if (i < 4) return {static_cast<std::uint8_t>(scales[i] & 63), static_cast<std::uint8_t>(scales[i + 4] & 63)};
  return {static_cast<std::uint8_t>((scales[i + 4] & 15) | ((scales[i - 4] >> 6) << 4)),
          static_cast<std::uint8_t>((scales[i + 4] >> 4) | ((scales[i] >> 6) << 4))};
}

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockQ2_K) == 84);
static_assert(sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176);
static_assert(sizeof(BlockQ6_K) == 210 && sizeof(BlockIQ4_NL) == 18 && sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockMXFP4) == 17);

}  // namespace octavo
