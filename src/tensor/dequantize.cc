#include "tensor/dequantize.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "tensor/quant_blocks.h"

namespace octavo {
namespace {

float f32(int q) { return static_cast<float>(q); }

int low(std::uint8_t byte) { return byte & 15; }
int high(std::uint8_t byte) { return byte >> 4; }

void expand(const BlockQ4_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * f32(low(block.qs[j]) - 8);
    out[j + 16] = d * f32(high(block.qs[j]) - 8);
  }
}

void expand(const BlockQ4_1& block, float* out) {
  const float d = f16_to_f32(block.d), min = f16_to_f32(block.min);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * f32(low(block.qs[j])) + min;
    out[j + 16] = d * f32(high(block.qs[j])) + min;
  }
}

/// Element j of a 5-bit block of 32.
int five_bits(const std::uint8_t (&qs)[16], const std::uint8_t (&qh)[4], int j) {
  const int nibble = j < 16 ? low(qs[j]) : high(qs[j - 16]);
  return nibble | (((qh[j / 8] >> (j % 8)) & 1) << 4);
}

void expand(const BlockQ5_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 32; ++j) out[j] = d * f32(five_bits(block.qs, block.qh, j) - 16);
}

void expand(const BlockQ5_1& block, float* out) {
  const float d = f16_to_f32(block.d), min = f16_to_f32(block.min);
  for (int j = 0; j < 32; ++j) out[j] = d * f32(five_bits(block.qs, block.qh, j)) + min;
}

void expand(const BlockQ8_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 32; ++j) out[j] = d * f32(block.qs[j]);
}

/// Element i of the 2-bit planes that Q2_K and Q3_K share.
int two_bits(const std::uint8_t (&qs)[64], int i) {
  const int run = i / 128, plane = i % 128 / 32;
  return (qs[32 * run + i % 32] >> (2 * plane)) & 3;
}

void expand(const BlockQ2_K& block, float* out) {
  const float d = f16_to_f32(block.d), min = f16_to_f32(block.min);
  for (int i = 0; i < 256; ++i) {
    const std::uint8_t scale = block.scales[i / 16];
    out[i] = (d * f32(low(scale))) * f32(two_bits(block.qs, i)) - min * f32(high(scale));
  }
}

void expand(const BlockQ3_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 256; ++i) {
    const int sub = i / 16;
    const int low_bits = sub < 8 ? low(block.scales[sub]) : high(block.scales[sub - 8]);
    const int high_bits = (block.scales[8 + sub % 4] >> (2 * (sub / 4))) & 3;
    const float scale = d * f32((low_bits | (high_bits << 4)) - 32);
    const int high = (block.hmask[i % 32] >> (i / 32)) & 1;
    out[i] = scale * f32(two_bits(block.qs, i) - 4 * (1 - high));
  }
}

/// Element i of the nibbles that Q4_K, Q5_K share: runs of 32 bytes hold 64 elements.
int run_nibble(const std::uint8_t (&qs)[128], int i) {
  const std::uint8_t byte = qs[32 * (i / 64) + i % 32];
  return i % 64 < 32 ? low(byte) : high(byte);
}

void expand(const BlockQ4_K& block, float* out) {
  const float d = f16_to_f32(block.d), min = f16_to_f32(block.min);
  for (int i = 0; i < 256; ++i) {
    const ScaleMin sub = k_scale_min(block.scales, i / 32);
    out[i] = (d * f32(sub.scale)) * f32(run_nibble(block.qs, i)) - min * f32(sub.min);
  }
}

void expand(const BlockQ5_K& block, float* out) {
  const float d = f16_to_f32(block.d), min = f16_to_f32(block.min);
  for (int i = 0; i < 256; ++i) {
    const ScaleMin sub = k_scale_min(block.scales, i / 32);
    const int fifth = (block.qh[i % 32] >> (i / 32)) & 1;
    out[i] = (d * f32(sub.scale)) * f32(run_nibble(block.qs, i) | (fifth << 4)) - min * f32(sub.min);
  }
}

void expand(const BlockQ6_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, within = i % 128;
    const std::uint8_t byte = block.ql[64 * half + within % 64];
    const int low_bits = within < 64 ? low(byte) : high(byte);
    const int high_bits = (block.qh[32 * half + i % 32] >> (2 * (within / 32))) & 3;
    out[i] = (d * f32(block.scales[i / 16])) * f32((low_bits | (high_bits << 4)) - 32);
  }
}

void expand(const BlockIQ4_NL& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * f32(kIq4Values[low(block.qs[j])]);
    out[j + 16] = d * f32(kIq4Values[high(block.qs[j])]);
  }
}

void expand(const BlockIQ4_XS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 256; ++i) {
    const int sub = i / 32;
    const int low_bits = sub % 2 == 0 ? low(block.scales_low[sub / 2]) : high(block.scales_low[sub / 2]);
    const int high_bits = (block.scales_high >> (2 * sub)) & 3;
    const float scale = d * f32((low_bits | (high_bits << 4)) - 32);
    const std::uint8_t byte = block.qs[16 * sub + i % 16];
    out[i] = scale * f32(kIq4Values[i % 32 < 16 ? low(byte) : high(byte)]);
  }
}

void expand(const BlockMXFP4& block, float* out) {
  // 2^(e - 128), the half that the doubled values need; a denormal for e < 2.
  const std::uint32_t bits = block.e < 2 ? 0x00200000U << block.e : static_cast<std::uint32_t>(block.e - 1) << 23;
  const auto d = std::bit_cast<float>(bits);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * f32(kFp4Values[low(block.qs[j])]);
    out[j + 16] = d * f32(kFp4Values[high(block.qs[j])]);
  }
}

template <class Block>
void expand_all(const TypeTraits& traits, const std::byte* blocks, std::uint64_t count, float* out) {
  for (std::uint64_t i = 0; i < count; i += traits.block_size) {
    Block block;
    std::memcpy(&block, blocks, sizeof block);
    expand(block, out + i);
    blocks += sizeof block;
  }
}

template <class Convert>
void convert_all(const std::byte* source, std::uint64_t count, float* out, Convert convert) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, source + 2 * i, sizeof bits);
    out[i] = convert(bits);
  }
}

}  // namespace

void dequantize(TensorType type, const std::byte* blocks, std::uint64_t count, float* out) {
  const TypeTraits& traits = traits_of(type);
  OCTAVO_CHECK(count % traits.block_size == 0, "dequantize takes whole blocks");
  switch (type) {
    case TensorType::kF32: std::memcpy(out, blocks, count * sizeof(float)); return;
    case TensorType::kF16: return convert_all(blocks, count, out, f16_to_f32);
    case TensorType::kBF16: return convert_all(blocks, count, out, bf16_to_f32);
    case TensorType::kQ4_0: return expand_all<BlockQ4_0>(traits, blocks, count, out);
    case TensorType::kQ4_1: return expand_all<BlockQ4_1>(traits, blocks, count, out);
    case TensorType::kQ5_0: return expand_all<BlockQ5_0>(traits, blocks, count, out);
    case TensorType::kQ5_1: return expand_all<BlockQ5_1>(traits, blocks, count, out);
    case TensorType::kQ8_0: return expand_all<BlockQ8_0>(traits, blocks, count, out);
    case TensorType::kQ2_K: return expand_all<BlockQ2_K>(traits, blocks, count, out);
    case TensorType::kQ3_K: return expand_all<BlockQ3_K>(traits, blocks, count, out);
    case TensorType::kQ4_K: return expand_all<BlockQ4_K>(traits, blocks, count, out);
    case TensorType::kQ5_K: return expand_all<BlockQ5_K>(traits, blocks, count, out);
    case TensorType::kQ6_K: return expand_all<BlockQ6_K>(traits, blocks, count, out);
    case TensorType::kIQ4_NL: return expand_all<BlockIQ4_NL>(traits, blocks, count, out);
    case TensorType::kIQ4_XS: return expand_all<BlockIQ4_XS>(traits, blocks, count, out);
    case TensorType::kMXFP4: return expand_all<BlockMXFP4>(traits, blocks, count, out);
  }
}

}  // namespace octavo
