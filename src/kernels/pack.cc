#include "kernels/pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "tensor/dequantize.h"

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

void write_bits(Byte* plane, std::uint32_t lane, const Lane& w) {
  std::uint32_t bits = 0;
  for (std::uint32_t j = 0; j < 8; ++j) bits |= (w.group(j) >> 4 & 0x01010101) << j;
  store32(plane + 4 * lane, bits);
}

void write_bit_pairs(Byte* planes, std::uint32_t lane, const Lane& w) {
  for (std::uint32_t p = 0; p < 2; ++p) {
    std::uint32_t bits = 0;
    for (std::uint32_t j = 0; j < 4; ++j) bits |= (w.group(4 * p + j) >> 4 & 0x03030303) << 2 * j;
    store32(planes + 64 * p + 4 * lane, bits);
  }
}

void write_bytes(Byte* cell, std::uint32_t lane, const Lane& w) {
  for (std::uint32_t j = 0; j < 8; ++j) store32(cell + 64 * j + 4 * lane, w.group(j));
}

void write_f16(Byte* column, std::uint32_t lane, const Byte* f16) { std::memcpy(column + 2 * lane, f16, 2); }

// A file's block, cell by cell. `b` is the block, `s` the cell inside it.
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

Lane q5_k_of(const Byte* qs, const Byte* qh, std::uint32_t s) {
  Lane w = k_nibbles_of(qs, s);
  for (int i = 0; i < 32; ++i) w.q[i] |= (qh[i] >> s & 1) << 4;
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

/// The 6-bit scale and min of cell s from the 12 bytes of a Q4_K or Q5_K block.
struct ScaleMin {
  Byte scale, min;
};
ScaleMin k_scale_min(const Byte* packed, std::uint32_t s) {
  if (s < 4) return {static_cast<Byte>(packed[s] & 63), static_cast<Byte>(packed[s + 4] & 63)};
  return {static_cast<Byte>((packed[s + 4] & 15) | (packed[s - 4] >> 6) << 4),
          static_cast<Byte>(packed[s + 4] >> 4 | (packed[s] >> 6) << 4)};
}

/// Where a cell of a group goes.
struct Target {
  Byte* header;
  Byte* cell;
  std::uint32_t index;  // of the cell in its group
};

void pack_simple(WeightFormat format, const Byte* block, std::uint32_t lane, const Target& to) {
  Byte* scales = to.header + to.index * cell_layout(format).header_bytes_per_cell;
  write_f16(scales, lane, block);
  switch (format) {
    case WeightFormat::kQ4_0: return write_nibbles(to.cell, lane, nibbles_of(block + 2));
    case WeightFormat::kQ4_1:
      write_f16(scales + 32, lane, block + 2);
      return write_nibbles(to.cell, lane, nibbles_of(block + 4));
    case WeightFormat::kQ5_0: {
      const Lane w = nibbles_and_bits_of(block + 6, block + 2);
      write_nibbles(to.cell, lane, w);
      return write_bits(to.cell + 256, lane, w);
    }
    case WeightFormat::kQ5_1: {
      write_f16(scales + 32, lane, block + 2);
      const Lane w = nibbles_and_bits_of(block + 8, block + 4);
      write_nibbles(to.cell, lane, w);
      return write_bits(to.cell + 256, lane, w);
    }
    default: return write_bytes(to.cell, lane, bytes_of(block + 2));  // Q8_0
  }
}

void pack_super(WeightFormat format, const Byte* block, std::uint32_t lane, const Target& to) {
  Byte* scales = to.header + 64 + 32 * to.index;
  if (format == WeightFormat::kQ6_K) {
    const Lane w = q6_k_of(block, block + 128, to.index);
    write_f16(to.header, lane, block + 208);
    scales[lane] = block[192 + 2 * to.index];
    scales[16 + lane] = block[192 + 2 * to.index + 1];
    write_nibbles(to.cell, lane, w);
    return write_bit_pairs(to.cell + 256, lane, w);
  }
  const ScaleMin pair = k_scale_min(block + 4, to.index);
  write_f16(to.header, lane, block);
  write_f16(to.header + 32, lane, block + 2);
  scales[lane] = pair.scale;
  scales[16 + lane] = pair.min;
  if (format == WeightFormat::kQ4_K) return write_nibbles(to.cell, lane, k_nibbles_of(block + 16, to.index));
  const Lane w = q5_k_of(block + 48, block + 16, to.index);
  write_nibbles(to.cell, lane, w);
  write_bits(to.cell + 256, lane, w);
}

void pack_block_row(WeightFormat format, const Byte* row, const TypeTraits& traits, std::uint32_t k, std::uint32_t lane,
                    Byte* panel) {
  const CellLayout layout = cell_layout(format);
  const std::uint32_t num_cells = k / kCellInputs;
  const bool super = traits.block_size == 256;
  for (std::uint32_t first = 0; first < num_cells; first += kGroupCells) {
    const std::uint32_t cells = std::min(kGroupCells, num_cells - first);
    Target to{panel, panel + group_header_bytes(layout, cells), 0};
    for (; to.index < cells; ++to.index, to.cell += layout.cell_bytes) {
      if (super) {
        pack_super(format, row + first / kGroupCells * traits.block_bytes, lane, to);
      } else {
        pack_simple(format, row + std::size_t{first + to.index} * traits.block_bytes, lane, to);
      }
    }
    panel = to.cell;
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
    case TensorType::kBF16:
    case TensorType::kQ2_K:
    case TensorType::kQ3_K:
    case TensorType::kIQ4_NL:
    case TensorType::kIQ4_XS:
    case TensorType::kMXFP4: break;
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
  const bool same = format == packed_format_of(type) && (format != WeightFormat::kBF16 || type == TensorType::kBF16);
  OCTAVO_CHECK(same || format == WeightFormat::kF32 || format == WeightFormat::kBF16, "packing keeps or widens a type");
  const std::uint64_t row_bytes = std::uint64_t{k} / traits.block_size * traits.block_bytes;
  const std::uint64_t bytes = panel_bytes(format, k);
  for (std::uint32_t p = panel_begin; p < panel_end; ++p) {
    Byte* panel = reinterpret_cast<Byte*>(out) + p * bytes;
    std::memset(panel, 0, bytes);
    for (std::uint32_t lane = 0; lane < kPanelLanes && p * kPanelLanes + lane < n; ++lane) {
      const Byte* row = reinterpret_cast<const Byte*>(rows) + (p * kPanelLanes + lane) * row_bytes;
      if (same && act_kind_of(format) == ActKind::kInt8) {
        pack_block_row(format, row, traits, k, lane, panel);
      } else if (same && format != WeightFormat::kF32) {
        copy_halves(format, row, k, lane, panel);
      } else {
        pack_dequantized_row(format, type, row, k, lane, panel);
      }
    }
  }
}

}  // namespace octavo
