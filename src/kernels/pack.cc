#include "kernels/pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "tensor/dequantize.h"
#include "tensor/quant_blocks.h"

namespace octavo {
namespace {

using Byte = std::uint8_t;

// Four weights at once: the four bytes of a 32-bit word, in order on a little-endian machine.
std::uint32_t load32(const Byte* p) {
  std::uint32_t word;
  std::memcpy(&word, p, 4);
  return word;
}
void store32(Byte* p, std::uint32_t word) { std::memcpy(p, &word, 4); }

/// One lane of one cell: its 32 unsigned weights in input order.
struct Lane {
  Byte q[kCellInputs];

  [[nodiscard]] std::uint32_t group(std::uint32_t j) const { return load32(q + 4 * j); }
};

void write_nibbles(Byte* cell, std::uint32_t lane, const Lane& w) {
  for (std::uint32_t j = 0; j < 4; ++j) {
    store32(cell + 64 * j + 4 * lane, (w.group(j) & 0x0F0F0F0F) | (w.group(j + 4) & 0x0F0F0F0F) << 4);
  }
}

/// Bit `shift` of every weight.
void write_bits(Byte* plane, std::uint32_t lane, const Lane& w, int shift) {
  std::uint32_t bits = 0;
  for (std::uint32_t j = 0; j < 8; ++j) bits |= (w.group(j) >> shift & 0x01010101) << j;
  store32(plane + 4 * lane, bits);
}

/// Bits `shift` and `shift` + 1 of every weight.
void write_bit_pairs(Byte* planes, std::uint32_t lane, const Lane& w, int shift) {
  for (std::uint32_t p = 0; p < 2; ++p) {
    std::uint32_t bits = 0;
    for (std::uint32_t j = 0; j < 4; ++j) bits |= (w.group(4 * p + j) >> shift & 0x03030303) << 2 * j;
    store32(planes + 64 * p + 4 * lane, bits);
  }
}

void write_codes(Codes codes, Byte* cell, std::uint32_t lane, const Lane& w) {
  switch (codes) {
    case Codes::kNibbles:
    case Codes::kIq4Nibbles:
    case Codes::kFp4Nibbles: return write_nibbles(cell, lane, w);
    case Codes::kNibblesBit: write_nibbles(cell, lane, w); return write_bits(cell + 256, lane, w, 4);
    case Codes::kNibblesPairs: write_nibbles(cell, lane, w); return write_bit_pairs(cell + 256, lane, w, 4);
    case Codes::kPairs: return write_bit_pairs(cell, lane, w, 0);
    case Codes::kPairsBit: write_bit_pairs(cell, lane, w, 0); return write_bits(cell + 128, lane, w, 2);
    case Codes::kBytes:
      for (std::uint32_t j = 0; j < 8; ++j) store32(cell + 64 * j + 4 * lane, w.group(j));
  }
}

// A file's blocks (tensor/quant_blocks.h), cell by cell. `s` is the cell inside its block.
Lane nibbles_of(const Byte* qs) {
  Lane w;
  for (int i = 0; i < 16; ++i) {
    w.q[i] = qs[i] & 15;
    w.q[i + 16] = qs[i] >> 4;
  }
  return w;
}

Lane nibbles_and_bits_of(const Byte* qs, const Byte* qh) {
  Lane w = nibbles_of(qs);
  const std::uint32_t bits = load32(qh);
  for (int i = 0; i < 32; ++i) w.q[i] |= (bits >> i & 1) << 4;
  return w;
}

Lane bytes_of(const Byte* qs) {
  Lane w;
  for (int i = 0; i < 32; ++i) w.q[i] = qs[i] ^ 0x80;  // signed -> + 128
  return w;
}

Lane k_nibbles_of(const Byte* qs, std::uint32_t s) {
  Lane w;
  for (int i = 0; i < 32; ++i) w.q[i] = qs[s / 2 * 32 + i] >> (s % 2 * 4) & 15;
  return w;
}

/// Bit s of each byte becomes bit `place` of a weight.
void add_bits(Lane& w, const Byte* qh, std::uint32_t s, int place) {
  for (int i = 0; i < 32; ++i) w.q[i] |= (qh[i] >> s & 1) << place;
}

Lane q5_k_of(const Byte* qs, const Byte* qh, std::uint32_t s) {
  Lane w = k_nibbles_of(qs, s);
  add_bits(w, qh, s, 4);
  return w;
}

Lane q6_k_of(const Byte* ql, const Byte* qh, std::uint32_t s) {
  Lane w;
  const Byte* low = ql + s / 4 * 64 + s % 2 * 32;
  const Byte* high = qh + s / 4 * 32;
  for (int i = 0; i < 32; ++i) {
    w.q[i] = (low[i] >> (s % 4 / 2 * 4) & 15) | (high[i] >> (s % 4 * 2) & 3) << 4;
  }
  return w;
}

Lane q2_k_of(const Byte* qs, std::uint32_t s) {
  Lane w;
  for (int i = 0; i < 32; ++i) w.q[i] = qs[s / 4 * 32 + i] >> (s % 4 * 2) & 3;
  return w;
}

Lane q3_k_of(const Byte* qs, const Byte* hmask, std::uint32_t s) {
  Lane w = q2_k_of(qs, s);
  add_bits(w, hmask, s, 2);
  return w;
}

/// The 6-bit scale of 16 inputs from the 12 bytes of a Q3_K block.
Byte q3_k_scale(const Byte* packed, std::uint32_t half) {
  const int low = half < 8 ? packed[half] & 15 : packed[half - 8] >> 4;
  const int high = packed[8 + half % 4] >> (half / 4 * 2) & 3;
  return static_cast<Byte>((low | high << 4) - 32);
}

/// The 6-bit scale of a cell from a whole IQ4_XS block: nibbles behind two bytes of bit pairs.
Byte iq4_xs_scale(const Byte* block, std::uint32_t s) {
  const int low = block[4 + s / 2] >> (s % 2 * 4) & 15;
  const int high = block[2 + s / 4] >> (s % 4 * 2) & 3;
  return static_cast<Byte>((low | high << 4) - 32);
}

/// Where one lane of a cell of a group goes.
struct Target {
  Byte* header;
  Byte* scales;         // of the cell itself
  std::uint32_t index;  // of the cell in its group
  std::uint32_t lane;

  void f16(Byte* column, const Byte* value) const { std::memcpy(column + 2 * lane, value, 2); }
  void byte(std::uint32_t column, Byte value) const { scales[16 * column + lane] = value; }
};

/// Writes the scales of one lane of a cell and gives its weights.
Lane read_cell(WeightFormat format, const Byte* block, const Target& to) {
  const std::uint32_t s = to.index;
  switch (format) {
    case WeightFormat::kQ4_0: to.f16(to.scales, block); return nibbles_of(block + 2);
    case WeightFormat::kIQ4_NL: to.f16(to.scales, block); return nibbles_of(block + 2);
    case WeightFormat::kQ5_0: to.f16(to.scales, block); return nibbles_and_bits_of(block + 6, block + 2);
    case WeightFormat::kQ8_0: to.f16(to.scales, block); return bytes_of(block + 2);
    case WeightFormat::kMXFP4: to.byte(0, block[0]); return nibbles_of(block + 1);
    case WeightFormat::kQ4_1:
      to.f16(to.scales, block);
      to.f16(to.scales + 32, block + 2);
      return nibbles_of(block + 4);
    case WeightFormat::kQ5_1:
      to.f16(to.scales, block);
      to.f16(to.scales + 32, block + 2);
      return nibbles_and_bits_of(block + 8, block + 4);
    case WeightFormat::kQ2_K:
      to.f16(to.header, block + 80);
      to.f16(to.header + 32, block + 82);
      to.byte(0, block[2 * s]);
      to.byte(1, block[2 * s + 1]);
      return q2_k_of(block + 16, s);
    case WeightFormat::kQ3_K:
      to.f16(to.header, block + 108);
      to.byte(0, q3_k_scale(block + 96, 2 * s));
      to.byte(1, q3_k_scale(block + 96, 2 * s + 1));
      return q3_k_of(block + 32, block, s);
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K: {
      std::uint8_t packed[12];
      std::memcpy(packed, block + 4, sizeof packed);
      const ScaleMin pair = k_scale_min(packed, static_cast<int>(s));
      to.f16(to.header, block);
      to.f16(to.header + 32, block + 2);
      to.byte(0, pair.scale);
      to.byte(1, pair.min);
      return format == WeightFormat::kQ4_K ? k_nibbles_of(block + 16, s) : q5_k_of(block + 48, block + 16, s);
    }
    case WeightFormat::kQ6_K:
      to.f16(to.header, block + 208);
      to.byte(0, block[192 + 2 * s]);
      to.byte(1, block[192 + 2 * s + 1]);
      return q6_k_of(block, block + 128, s);
    case WeightFormat::kIQ4_XS:
      to.f16(to.header, block);
      to.byte(0, iq4_xs_scale(block, s));
      return nibbles_of(block + 8 + 16 * s);
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16: break;
  }
  return {};
}

void pack_block_row(WeightFormat format, const Byte* row, const TypeTraits& traits, std::uint32_t k, std::uint32_t lane,
                    Byte* panel) {
  const CellLayout layout = cell_layout(format);
  const std::uint32_t num_cells = k / kCellInputs, cells_a_block = traits.block_size / kCellInputs;
  for (std::uint32_t first = 0; first < num_cells; first += kGroupCells) {
    const std::uint32_t cells = std::min(kGroupCells, num_cells - first);
    Target to{panel, panel + layout.header_bytes, 0, lane};
    Byte* cell = panel + group_header_bytes(layout, cells);
    for (; to.index < cells; ++to.index, to.scales += layout.header_bytes_per_cell, cell += layout.cell_bytes) {
      const Byte* block = row + std::size_t{(first + to.index) / cells_a_block} * traits.block_bytes;
      write_codes(layout.codes, cell, lane, read_cell(format, block, to));
    }
    panel = cell;
  }
}

/// One input of one lane of a panel of floats.
void write_float(WeightFormat format, Byte* panel, std::uint32_t lane, std::uint32_t k, float value) {
  if (format == WeightFormat::kF32) {
    std::memcpy(panel + (std::size_t{k} * 16 + lane) * 4, &value, 4);
  } else {
    const std::uint16_t half = f32_to_bf16(value);
    std::memcpy(panel + (std::size_t{k / 2} * 32 + lane * 2 + k % 2) * 2, &half, 2);
  }
}

void pack_dequantized_row(WeightFormat format, TensorType type, const Byte* row, std::uint32_t k, std::uint32_t lane,
                          Byte* panel) {
  const TypeTraits& traits = traits_of(type);
  constexpr std::uint32_t kChunk = 256;  // a multiple of every block size
  float values[kChunk];
  for (std::uint32_t first = 0; first < k; first += kChunk) {
    const std::uint32_t count = std::min(kChunk, k - first);
    const Byte* blocks = row + std::size_t{first / traits.block_size} * traits.block_bytes;
    dequantize(type, reinterpret_cast<const std::byte*>(blocks), count, values);
    for (std::uint32_t i = 0; i < count; ++i) write_float(format, panel, lane, first + i, values[i]);
  }
}

void copy_halves(WeightFormat format, const Byte* row, std::uint32_t k, std::uint32_t lane, Byte* panel) {
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::size_t at =
        format == WeightFormat::kF16 ? std::size_t{i} * 16 + lane : std::size_t{i / 2} * 32 + lane * 2 + i % 2;
    std::memcpy(panel + at * 2, row + std::size_t{i} * 2, 2);
  }
}

}  // namespace

WeightFormat packed_format_of(TensorType type) {
  switch (type) {
    case TensorType::kF32: return WeightFormat::kF32;
    case TensorType::kF16: return WeightFormat::kF16;
    case TensorType::kQ4_0: return WeightFormat::kQ4_0;
    case TensorType::kQ4_1: return WeightFormat::kQ4_1;
    case TensorType::kQ5_0: return WeightFormat::kQ5_0;
    case TensorType::kQ5_1: return WeightFormat::kQ5_1;
    case TensorType::kQ8_0: return WeightFormat::kQ8_0;
    case TensorType::kQ4_K: return WeightFormat::kQ4_K;
    case TensorType::kQ5_K: return WeightFormat::kQ5_K;
    case TensorType::kQ6_K: return WeightFormat::kQ6_K;
    case TensorType::kQ2_K: return WeightFormat::kQ2_K;
    case TensorType::kQ3_K: return WeightFormat::kQ3_K;
    case TensorType::kIQ4_NL: return WeightFormat::kIQ4_NL;
    case TensorType::kIQ4_XS: return WeightFormat::kIQ4_XS;
    case TensorType::kMXFP4: return WeightFormat::kMXFP4;
    case TensorType::kBF16: break;
  }
  return WeightFormat::kBF16;
}

ActKind act_kind_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16: return ActKind::kF32;
    case WeightFormat::kBF16: return ActKind::kBF16;
    default: return ActKind::kInt8;
  }
}

std::uint64_t panel_bytes(WeightFormat format, std::uint32_t k) {
  switch (format) {
    case WeightFormat::kF32: return std::uint64_t{k} * 64;
    case WeightFormat::kF16: return (std::uint64_t{k} * 32 + 63) / 64 * 64;
    case WeightFormat::kBF16: return (std::uint64_t{k} + 31) / 32 * 32 * 32;
    default: break;
  }
  const CellLayout layout = cell_layout(format);
  const std::uint32_t cells = k / kCellInputs;
  const std::uint32_t tail = cells % kGroupCells;
  const std::uint64_t headers = std::uint64_t{cells / kGroupCells} * group_header_bytes(layout, kGroupCells) +
                                (tail == 0 ? 0 : group_header_bytes(layout, tail));
  return headers + std::uint64_t{cells} * layout.cell_bytes;
}

void pack_panels(TensorType type, const std::byte* rows, std::uint32_t n, std::uint32_t k, WeightFormat format,
                 std::uint32_t panel_begin, std::uint32_t panel_end, std::byte* out) {
  const TypeTraits& traits = traits_of(type);
  OCTAVO_CHECK(k % traits.block_size == 0, "a row is a whole number of blocks");
  const bool own = format == packed_format_of(type);
  OCTAVO_CHECK(own || format == WeightFormat::kF32 || format == WeightFormat::kBF16, "packing keeps or widens a type");
  const std::uint64_t row_bytes = std::uint64_t{k} / traits.block_size * traits.block_bytes;
  const std::uint64_t bytes = panel_bytes(format, k);
  for (std::uint32_t p = panel_begin; p < panel_end; ++p) {
    Byte* panel = reinterpret_cast<Byte*>(out) + p * bytes;
    std::memset(panel, 0, bytes);
    for (std::uint32_t lane = 0; lane < kPanelLanes && p * kPanelLanes + lane < n; ++lane) {
      const Byte* row = reinterpret_cast<const Byte*>(rows) + (p * kPanelLanes + lane) * row_bytes;
      if (!own || format == WeightFormat::kF32) {
        pack_dequantized_row(format, type, row, k, lane, panel);
      } else if (act_kind_of(format) == ActKind::kInt8) {
        pack_block_row(format, row, traits, k, lane, panel);
      } else {
        copy_halves(format, row, k, lane, panel);
      }
    }
  }
}

}  // namespace octavo
