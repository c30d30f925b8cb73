// The linear contract: what a packed matrix and prepared activation rows look like byte for byte, and in which order
// `gemm` adds. Every table gives the same bits because integer block sums are exact and each output has one float
// accumulator. docs/numerics.md is the long form; `ref/gemm.cc` is the specification in code.
//
// 1. Weights: N16 panels
//   A panel is 16 outputs (lanes) x all of K; n is padded to 16 with zero weights. Panels are contiguous.
//
//   Block formats: K is cut into cells of 32, and cells into groups of 8 (256 inputs); the last group may hold fewer.
//   A group is a header, padded to 64 bytes, then its cells, so a panel is one ascending stream of aligned vectors.
//     format       header                                                          cell
//     Q4_0         f16 d[cells][16]                                                nibbles
//     Q5_0         f16 d[cells][16]                                                nibbles, bits
//     Q8_0         f16 d[cells][16]                                                bytes
//     Q4_1         f16 {d[16], m[16]}[cells]                                       nibbles
//     Q5_1         f16 {d[16], m[16]}[cells]                                       nibbles, bits
//     Q4_K         f16 D[16], f16 Dmin[16], u8 {sc[16], m[16]}[8]                  nibbles
//     Q5_K         f16 D[16], f16 Dmin[16], u8 {sc[16], m[16]}[8]                  nibbles, bits
//     Q6_K         f16 D[16], 32 zero bytes, i8 {sc of the first 16[16], second[16]}[8]   nibbles, bit pairs
//     Q3_K         as Q6_K                                                         bit pairs, bits
//     Q2_K         f16 D[16], f16 Dmin[16], u8 {sc + 16 m of the first 16[16], second[16]}[8]   bit pairs
//     IQ4_NL       f16 d[cells][16]                                                nibbles: places in kIq4Values
//     IQ4_XS       f16 D[16], 32 zero bytes, i8 sc[8][16]                          nibbles: places in kIq4Values
//     MXFP4        u8 e[cells][16]                                                 nibbles: places in kFp4Values
//   The cell's weights q are unsigned, in 8 vectors of 64 bytes: vector j, lane n, byte i is input 4j + i of output n
//   (an operand of vpdpbusd, 8 rows of an AMX tile). They are stored as
//     bytes      u8 [8 vectors][16 lanes][4]
//     nibbles    u8 [4][16][4]: vector j in the low, vector j + 4 in the high nibbles
//     bits       u8 [16][4]: bit j is bit 4 of vector j (Q3_K: bit 2)
//     bit pairs  u8 [2][16][4]: of plane p, bits 2j and 2j + 1 are bits 4 and 5 of vector 4p + j (Q2_K, Q3_K: 0 and 1)
//   and where they are places in a table of tensor/quant_blocks.h, q is the value there + offset.
//
//   BF16: [round_up(k, 32) / 2][16][2], F16: [k][16], F32: [k][16]; zeros pad K and the panel's end to 64 bytes.
//
// 2. Activations (prepare_rows)
//   Int8: rows in tiles of 16, per 32 inputs: amax = the integer maximum of the bits of |x|;
//     amax below 2^-100: scale = 0, q = 0. An x that is not finite: scale = NaN, q = 0, so the outputs are NaN too.
//     Else scale = amax / 127, q = round to nearest even(x * (127 / amax)).
//     sum8 = the sums of q over inputs with k % 4 < 2 and with k % 4 >= 2 of the first 16, then of the second 16.
//     scaled_sum = scale * float(sum of q over the 32).
//   BF16: x rounded to nearest even (denormals to signed zero), zeros to round_up(k, 32); in every four inputs the
//     order is 2, 0, 3, 1: 32-bit words (k + 2, k) and (k + 3, k + 1), so that vdpbf16ps, which multiplies its high
//     half first, runs the even and the odd chain of the tile-32 order below.
//   F32: as they are.
//
// 3. Accumulation, per output: acc = 0; then with k ascending, fma and every product and sum rounded to f32,
//   Q4_0 Q5_0 Q8_0 IQ4_NL IQ4_XS MXFP4
//                    per cell: acc = fma(float(isum), ws * scale, acc)      isum = sum of (q - offset) * activation
//   Q4_1 Q5_1 Q4_K Q5_K    the same with offset 0, then acc = fma(-wmin, scaled_sum, acc)
//                    ws = d or D * sc; wmin = -m or Dmin * m: all exact in f32
//                    MXFP4: ws = 2^(e - 128), and 0 where that would be a denormal (e < 2)
//   Q6_K Q3_K        per cell: acc = fma(float(sc0 * isum0 + sc1 * isum1), D * scale, acc), the bracket in integers;
//                    isum0 and isum1 are of the first and the second 16 inputs
//   Q2_K             the same with offset 0, then acc = fma(float(m0 * sum0 + m1 * sum1), -Dmin * scale, acc);
//                    sum0 and sum1 are of the activations, the bracket in integers
//   BF16 (tile-32)   per 32: E = O = 0; over the pairs E = fma(w[2i], a[2i], E), O = fma(w[2i+1], a[2i+1], O);
//                    then acc = acc + (E + O)
//   F16 F32          per input: acc = fma(w, a, acc)
//   and at the end y = acc + bias, or y = acc without one.
#pragma once
#include <cstdint>

#include "tensor/packed.h"

namespace octavo {

inline constexpr std::uint32_t kPanelLanes = 16;  // outputs a panel
inline constexpr std::uint32_t kCellInputs = 32;
inline constexpr std::uint32_t kGroupCells = 8;
inline constexpr std::uint32_t kTileRows = 16;  // activation rows a tile

/// How a cell stores its 32 x 16 weights.
enum class Codes : std::uint8_t {
  kNibbles,
  kNibblesBit,    // and a fifth bit
  kNibblesPairs,  // and two more
  kBytes,
  kIq4Nibbles,  // places in kIq4Values
  kFp4Nibbles,  // places in kFp4Values
  kPairs,
  kPairsBit,  // and a third bit
};

/// What multiplies them. The first four: one f32 factor per 32 inputs. The last two: integers per 16 inside D.
enum class Scales : std::uint8_t {
  kF16,       // d
  kF16Min,    // d, m
  kE8m0,      // e
  kSuper,     // D; sc signed
  kSuperMin,  // D, Dmin; sc, m
  kHalves,    // D; two sc, signed
  kHalvesMin  // D, Dmin; two of sc, m
};

/// Of the block formats.
struct CellLayout {
  Codes codes;
  Scales scales;
  std::int32_t offset;  // the value of a weight is (q - offset) times its scale
  std::uint32_t header_bytes, header_bytes_per_cell, cell_bytes;

  [[nodiscard]] constexpr bool has_min() const {
    return scales == Scales::kF16Min || scales == Scales::kSuperMin || scales == Scales::kHalvesMin;
  }
  /// Two integer scales per cell, one of each 16 inputs.
  [[nodiscard]] constexpr bool in_halves() const { return scales == Scales::kHalves || scales == Scales::kHalvesMin; }
};

constexpr CellLayout cell_layout(WeightFormat format) {
  switch (format) {
    case WeightFormat::kQ4_0: return {Codes::kNibbles, Scales::kF16, 8, 0, 32, 256};
    case WeightFormat::kQ5_0: return {Codes::kNibblesBit, Scales::kF16, 16, 0, 32, 320};
    case WeightFormat::kQ8_0: return {Codes::kBytes, Scales::kF16, 128, 0, 32, 512};
    case WeightFormat::kQ4_1: return {Codes::kNibbles, Scales::kF16Min, 0, 0, 64, 256};
    case WeightFormat::kQ5_1: return {Codes::kNibblesBit, Scales::kF16Min, 0, 0, 64, 320};
    case WeightFormat::kQ4_K: return {Codes::kNibbles, Scales::kSuperMin, 0, 64, 32, 256};
    case WeightFormat::kQ5_K: return {Codes::kNibblesBit, Scales::kSuperMin, 0, 64, 32, 320};
    case WeightFormat::kQ6_K: return {Codes::kNibblesPairs, Scales::kHalves, 32, 64, 32, 384};
    case WeightFormat::kQ2_K: return {Codes::kPairs, Scales::kHalvesMin, 0, 64, 32, 128};
    case WeightFormat::kQ3_K: return {Codes::kPairsBit, Scales::kHalves, 4, 64, 32, 192};
    case WeightFormat::kIQ4_NL: return {Codes::kIq4Nibbles, Scales::kF16, 128, 0, 32, 256};
    case WeightFormat::kIQ4_XS: return {Codes::kIq4Nibbles, Scales::kSuper, 128, 64, 16, 256};
    case WeightFormat::kMXFP4: return {Codes::kFp4Nibbles, Scales::kE8m0, 12, 0, 16, 256};
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16: break;
  }
  return {};
}

constexpr std::uint32_t group_header_bytes(CellLayout layout, std::uint32_t cells) {
  return (layout.header_bytes + cells * layout.header_bytes_per_cell + 63) / 64 * 64;
}

}  // namespace octavo
