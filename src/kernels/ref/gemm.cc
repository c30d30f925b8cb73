// The linear contract of kernels/gemm.h, as plainly as it can be said.
#include "kernels/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/entries.h"
#include "tensor/dequantize.h"
#include "tensor/quant_blocks.h"

namespace octavo::ref {
namespace {

using Byte = std::uint8_t;

float f16_at(const Byte* p) {
  std::uint16_t half;
  std::memcpy(&half, p, 2);
  return f16_to_f32(half);
}

/// One output's share of a cell, unpacked: the weight of input i is q[i] * scale * part_scale - min, the last times
/// part_min in formats that have one.
struct Column {
  std::int32_t q[kCellInputs];                            // offset already subtracted
  float scale = 0, min = 0;                               // d, -m; of 256 inputs: D, Dmin; D * sc, Dmin * m per 32
  std::int32_t part_scale[2] = {1, 1}, part_min[2] = {};  // of each 16 inputs
};

std::int32_t weight_at(Codes codes, const Byte* cell, std::uint32_t lane, std::uint32_t input) {
  const std::uint32_t vector = input / 4, byte = 4 * lane + input % 4;
  const auto nibble = [&] { return vector < 4 ? cell[64 * vector + byte] & 15 : cell[64 * (vector - 4) + byte] >> 4; };
  const auto bit = [&](const Byte* plane) { return plane[byte] >> vector & 1; };
  const auto pair = [&](const Byte* planes) { return planes[64 * (vector / 4) + byte] >> (2 * (vector % 4)) & 3; };
  switch (codes) {
    case Codes::kNibbles: break;
    case Codes::kNibblesBit: return nibble() | bit(cell + 256) << 4;
    case Codes::kNibblesPairs: return nibble() | pair(cell + 256) << 4;
    case Codes::kBytes: return cell[64 * vector + byte];
    case Codes::kIq4Nibbles: return kIq4Values[nibble()] + cell_layout(WeightFormat::kIQ4_NL).offset;
    case Codes::kFp4Nibbles: return kFp4Values[nibble()] + cell_layout(WeightFormat::kMXFP4).offset;
    case Codes::kPairs: return pair(cell);
    case Codes::kPairsBit: return pair(cell) | bit(cell + 128) << 2;
  }
  return nibble();
}

/// 2^(e - 128), or 0 instead of a denormal.
float e8m0_at(const Byte* e) { return *e < 2 ? 0.0F : std::bit_cast<float>((*e - 1U) << 23); }

std::int32_t signed_byte(Byte b) { return static_cast<std::int8_t>(b); }

/// `group` starts a group of `cells` cells; the column is lane `lane` of its cell `index`.
Column read_column(CellLayout layout, const Byte* group, std::uint32_t cells, std::uint32_t index, std::uint32_t lane) {
  const Byte* cell = group + group_header_bytes(layout, cells) + index * layout.cell_bytes;
  const Byte* own = group + layout.header_bytes + index * layout.header_bytes_per_cell;
  const Byte *first = own + lane, *second = own + 16 + lane;
  Column column;
  for (std::uint32_t i = 0; i < kCellInputs; ++i) column.q[i] = weight_at(layout.codes, cell, lane, i) - layout.offset;
  if (layout.header_bytes != 0) {
    column.scale = f16_at(group + 2 * lane);
    column.min = f16_at(group + 32 + 2 * lane);
  }
  switch (layout.scales) {
    case Scales::kF16: column.scale = f16_at(own + 2 * lane); break;
    case Scales::kF16Min:
      column.scale = f16_at(own + 2 * lane);
      column.min = -f16_at(own + 32 + 2 * lane);
      break;
    case Scales::kE8m0: column.scale = e8m0_at(first); break;
    case Scales::kSuper: column.scale *= static_cast<float>(signed_byte(*first)); break;
    case Scales::kSuperMin:
      column.scale *= *first;
      column.min *= *second;
      break;
    case Scales::kHalves:
      column.part_scale[0] = signed_byte(*first);
      column.part_scale[1] = signed_byte(*second);
      break;
    case Scales::kHalvesMin:
      column.part_scale[0] = *first & 15;
      column.part_scale[1] = *second & 15;
      column.part_min[0] = *first >> 4;
      column.part_min[1] = *second >> 4;
      break;
  }
  return column;
}

/// acc after one more cell.
float add_cell(CellLayout layout, const Column& w, const ActRows& x, std::size_t slot, float acc) {
  const std::int8_t* q = x.q + slot * kCellInputs;
  std::int32_t dot[2] = {0, 0}, sum[2] = {0, 0};
  for (std::uint32_t i = 0; i < kCellInputs; ++i) {
    dot[i / 16] += w.q[i] * q[i];
    sum[i / 16] += q[i];
  }
  const std::int32_t isum = w.part_scale[0] * dot[0] + w.part_scale[1] * dot[1];
  acc = std::fma(static_cast<float>(isum), w.scale * x.scale[slot], acc);
  if (layout.scales == Scales::kHalvesMin) {
    const std::int32_t min = w.part_min[0] * sum[0] + w.part_min[1] * sum[1];
    acc = std::fma(static_cast<float>(min), -w.min * x.scale[slot], acc);
  } else if (layout.has_min()) {
    acc = std::fma(-w.min, x.scaled_sum[slot], acc);
  }
  return acc;
}

/// Calls visit(cell number, column) for the cells of one lane, inputs ascending.
template <class Visit>
void for_each_cell(WeightFormat format, const Byte* panel, std::uint32_t k, std::uint32_t lane, const Visit& visit) {
  const CellLayout layout = cell_layout(format);
  const std::uint32_t num_cells = k / kCellInputs;
  for (std::uint32_t first = 0; first < num_cells; first += kGroupCells) {
    const std::uint32_t cells = std::min(kGroupCells, num_cells - first);
    for (std::uint32_t c = 0; c < cells; ++c) visit(first + c, read_column(layout, panel, cells, c, lane));
    panel += group_header_bytes(layout, cells) + std::size_t{cells} * layout.cell_bytes;
  }
}

/// Where (row, block) of the tile-major int8 rows is.
std::size_t slot_of(const ActRows& x, std::uint32_t row, std::uint32_t block) {
  return (std::size_t{row / kTileRows} * (x.k / kCellInputs) + block) * kTileRows + row % kTileRows;
}

float float_weight(WeightFormat format, const Byte* panel, std::uint32_t lane, std::uint32_t k) {
  std::uint16_t half;
  float value;
  switch (format) {
    case WeightFormat::kF32: std::memcpy(&value, panel + (std::size_t{k} * 16 + lane) * 4, 4); return value;
    case WeightFormat::kF16: return f16_at(panel + (std::size_t{k} * 16 + lane) * 2);
    default: std::memcpy(&half, panel + (std::size_t{k / 2} * 32 + lane * 2 + k % 2) * 2, 2); return bf16_to_f32(half);
  }
}

// Inputs 0, 1, 2, 3 of every four are found at places 1, 3, 0, 2.
constexpr std::uint32_t kBf16Place[4] = {1, 3, 0, 2};

float dot_bf16(const Byte* panel, std::uint32_t lane, const Bf16* x, std::uint32_t k) {
  float acc = 0;
  for (std::uint32_t block = 0; block < k; block += 32) {
    float chain[2] = {0, 0};  // even, odd
    for (std::uint32_t i = block; i < block + 32; ++i) {
      const float a = bf16_to_f32(x[i / 4 * 4 + kBf16Place[i % 4]]);
      chain[i % 2] = std::fma(float_weight(WeightFormat::kBF16, panel, lane, i), a, chain[i % 2]);
    }
    acc += chain[0] + chain[1];
  }
  return acc;
}

float dot_float(WeightFormat format, const Byte* panel, std::uint32_t lane, const float* x, std::uint32_t k) {
  float acc = 0;
  for (std::uint32_t i = 0; i < k; ++i) acc = std::fma(float_weight(format, panel, lane, i), x[i], acc);
  return acc;
}

const Byte* panel_of(const PackedMatrix& w, std::uint32_t panel) {
  return reinterpret_cast<const Byte*>(w.panels) + panel * w.panel_bytes;
}

void quantise_block(const float* x, ActRows& out, std::size_t slot) {
  std::int8_t* q = out.q + slot * kCellInputs;
  std::int16_t* sum8 = out.sum8 + slot * 4;
  std::uint32_t amax_bits = 0;
  for (std::uint32_t i = 0; i < kCellInputs; ++i) {
    amax_bits = std::max(amax_bits, std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFF);
  }
  const float amax = std::bit_cast<float>(amax_bits);
  std::fill(q, q + kCellInputs, 0);
  std::fill(sum8, sum8 + 4, 0);
  float& scale = out.scale[slot];
  scale = 0;
  if (amax_bits >= 0x7F800000) {
    scale = std::numeric_limits<float>::quiet_NaN();
  } else if (amax >= 0x1p-100F) {
    scale = amax / 127;
    const float inverse = 127 / amax;
    for (std::uint32_t i = 0; i < kCellInputs; ++i) {
      q[i] = static_cast<std::int8_t>(std::nearbyint(x[i] * inverse));
      sum8[i / 16 * 2 + i % 4 / 2] += q[i];
    }
  }
  out.scaled_sum[slot] = scale * static_cast<float>(sum8[0] + sum8[1] + sum8[2] + sum8[3]);
}

}  // namespace

void prepare_rows(const float* x, std::uint64_t ldx, ActRows& out, std::uint32_t row_begin, std::uint32_t row_end) {
  for (std::uint32_t row = row_begin; row < row_end; ++row) {
    const float* in = x + row * ldx;
    switch (out.kind) {
      case ActKind::kInt8:
        for (std::uint32_t b = 0; b < out.k / kCellInputs; ++b) {
          quantise_block(in + std::size_t{b} * kCellInputs, out, slot_of(out, row, b));
        }
        break;
      case ActKind::kBF16: {
        const std::uint32_t width = (out.k + 31) / 32 * 32;
        Bf16* to = out.bf16 + std::size_t{row} * width;
        for (std::uint32_t i = 0; i < width; ++i) {
          to[i / 4 * 4 + kBf16Place[i % 4]] = i < out.k ? f32_to_bf16(in[i]) : Bf16{0};
        }
        break;
      }
      case ActKind::kF32: std::copy(in, in + out.k, out.f32 + std::size_t{row} * out.k); break;
    }
  }
}

void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy,
          std::uint32_t panel_begin, std::uint32_t panel_end) {
  const std::uint32_t end = std::min(panel_end * kPanelLanes, w.n);
  for (std::uint32_t n = panel_begin * kPanelLanes; n < end; ++n) {
    const Byte* panel = panel_of(w, n / kPanelLanes);
    const std::uint32_t lane = n % kPanelLanes;
    for (std::uint32_t row = 0; row < x.m; ++row) {
      float& acc = y[row * ldy + n];
      const std::uint32_t width = (x.k + 31) / 32 * 32;
      switch (x.kind) {
        case ActKind::kInt8: acc = 0; break;
        case ActKind::kBF16: acc = dot_bf16(panel, lane, x.bf16 + std::size_t{row} * width, width); break;
        case ActKind::kF32: acc = dot_float(w.format, panel, lane, x.f32 + std::size_t{row} * x.k, x.k); break;
      }
    }
    if (x.kind == ActKind::kInt8) {
      const CellLayout layout = cell_layout(w.format);
      for_each_cell(w.format, panel, w.k, lane, [&](std::uint32_t cell, const Column& column) {
        for (std::uint32_t row = 0; row < x.m; ++row) {
          float& acc = y[row * ldy + n];
          acc = add_cell(layout, column, x, slot_of(x, row, cell), acc);
        }
      });
    }
    if (bias != nullptr) {
      for (std::uint32_t row = 0; row < x.m; ++row) y[row * ldy + n] += bias[n];
    }
  }
}

void unpack_row(const PackedMatrix& w, std::uint32_t row, float* out) {
  const Byte* panel = panel_of(w, row / kPanelLanes);
  const std::uint32_t lane = row % kPanelLanes;
  const CellLayout layout = cell_layout(w.format);
  if (layout.cell_bytes == 0) {
    for (std::uint32_t k = 0; k < w.k; ++k) out[k] = float_weight(w.format, panel, lane, k);
    return;
  }
  for_each_cell(w.format, panel, w.k, lane, [&](std::uint32_t cell, const Column& column) {
    for (std::uint32_t i = 0; i < kCellInputs; ++i) {
      const float scale = column.scale * static_cast<float>(column.part_scale[i / 16]);
      float value = scale * static_cast<float>(column.q[i]);
      if (layout.scales == Scales::kHalvesMin) {
        value -= column.min * static_cast<float>(column.part_min[i / 16]);
      } else if (layout.has_min()) {
        value -= column.min;
      }
      out[cell * kCellInputs + i] = value;
    }
  });
}

}  // namespace octavo::ref
