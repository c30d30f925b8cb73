#include "unit/kernels/gemm_fixtures.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/float_mode.h"
#include "kernels/entries.h"
#include "kernels/select.h"
#include "tensor/dequantize.h"

#define OCTAVO_DECLARE_EMULATED(isa)                                                                 \
  namespace octavo::isa {                                                                            \
  void gemm(const ActRows& x, const PackedMatrix& w, const float* bias, float* y, std::uint64_t ldy, \
            std::uint32_t panel_begin, std::uint32_t panel_end);                                     \
  }
OCTAVO_DECLARE_EMULATED(avxvnni_emulated)
#ifdef OCTAVO_TEST_SIMDE
OCTAVO_DECLARE_EMULATED(avx512_emulated)
OCTAVO_DECLARE_EMULATED(avx512bf16_emulated)
OCTAVO_DECLARE_EMULATED(amx_emulated)
#endif

namespace octavo::test {
namespace {

Kernels emulated(const char* name, decltype(Kernels::gemm) gemm) {
  Kernels table{};
  table.name = name;
  table.prepare_rows = avx2::prepare_rows;
  table.gemm = gemm;
  return table;
}

/// Where a block keeps its f16 numbers.
std::vector<std::uint32_t> f16_offsets(TensorType type) {
  switch (type) {
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K: return {0, 2};
    case TensorType::kQ2_K: return {80, 82};
    case TensorType::kQ3_K: return {108};
    case TensorType::kQ6_K: return {208};
    case TensorType::kMXFP4: return {};
    default: return {0};
  }
}

float any_scale(Rng& rng) {
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-20, 2);  // down to subnormal f16
  return std::ldexp(normal(rng), exponent(rng));
}

}  // namespace

std::vector<const Kernels*> linear_tables() {
  auto tables = runnable_kernels();
  static const Kernels avxvnni = emulated("avxvnni (emulated)", avxvnni_emulated::gemm);
  tables.push_back(&avxvnni);
#ifdef OCTAVO_TEST_SIMDE
  static const Kernels avx512 = emulated("avx512 (emulated)", avx512_emulated::gemm);
  static const Kernels avx512bf16 = emulated("avx512bf16 (emulated)", avx512bf16_emulated::gemm);
  tables.push_back(&avx512);
  tables.push_back(&avx512bf16);
  static const Kernels amx = emulated("amx (emulated)", amx_emulated::gemm);
  tables.push_back(&amx);
#endif
  return tables;
}

std::vector<const Kernels*> linear_tables(ActKind kind) {
  auto tables = linear_tables();
  if (kind != ActKind::kBF16) {
    std::erase_if(tables, [](const Kernels* k) { return std::string_view(k->name).starts_with("avx512bf16"); });
  }
  return tables;
}

std::vector<std::byte> random_blocks(TensorType type, std::uint64_t count, Rng& rng) {
  const TypeTraits& traits = traits_of(type);
  std::vector<std::byte> out(count / traits.block_size * traits.block_bytes);
  std::normal_distribution<float> normal;
  for (std::size_t at = 0; at < out.size(); at += traits.block_bytes) {
    std::byte* block = out.data() + at;
    if (type == TensorType::kF32) {
      const float value = normal(rng);
      std::memcpy(block, &value, 4);
    } else if (type == TensorType::kBF16) {
      const std::uint16_t value = f32_to_bf16(normal(rng));
      std::memcpy(block, &value, 2);
    } else if (type == TensorType::kF16) {
      const std::uint16_t value = f32_to_f16(any_scale(rng));
      std::memcpy(block, &value, 2);
    } else {
      for (std::uint32_t i = 0; i < traits.block_bytes; ++i) block[i] = static_cast<std::byte>(rng());
      for (const std::uint32_t offset : f16_offsets(type)) {
        const std::uint16_t scale = f32_to_f16(any_scale(rng));
        std::memcpy(block + offset, &scale, 2);
      }
      if (type == TensorType::kMXFP4) block[0] = static_cast<std::byte>(115 + rng() % 20);  // no larger than f16
    }
  }
  return out;
}

void fill_codes(TensorType type, std::byte fill, std::vector<std::byte>& blocks) {
  const std::vector<std::byte> scales = blocks;
  std::fill(blocks.begin(), blocks.end(), fill);
  for (std::size_t at = 0; at < blocks.size(); at += traits_of(type).block_bytes) {
    for (const std::uint32_t offset : f16_offsets(type)) std::memcpy(&blocks[at + offset], &scales[at + offset], 2);
    if (type == TensorType::kMXFP4) blocks[at] = scales[at];
  }
}

std::vector<float> random_rows(std::uint32_t m, std::uint32_t k, Rng& rng) {
  std::vector<float> x(std::size_t{m} * k);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float size = i / k % 16 == 3 ? 1000.0F : 1.0F;
    x[i] = rng() % 8 == 0 ? 0.0F : size * normal(rng);
  }
  return x;
}

Packed pack(TensorType type, const std::vector<std::byte>& blocks, std::uint32_t n, std::uint32_t k,
            WeightFormat format) {
  Packed out;
  out.matrix = {nullptr, panel_bytes(format, k), n, k, format};
  out.bytes = AlignedBuffer(out.matrix.panel_bytes * out.matrix.num_panels());
  pack_panels(type, blocks.data(), n, k, format, 0, out.matrix.num_panels(), out.bytes.data());
  out.matrix.panels = out.bytes.data();
  return out;
}

Prepared prepare(const Kernels& kernels, ActKind kind, const std::vector<float>& x, std::uint32_t m, std::uint32_t k) {
  Prepared out{AlignedBuffer(act_rows_bytes(kind, m, k)), {}};
  out.rows = make_act_rows(kind, m, k, out.bytes.data());
  const FloatMode mode;
  kernels.prepare_rows(x.data(), k, out.rows, 0, m);
  return out;
}

std::vector<float> multiply(const Kernels& kernels, const ActRows& x, const PackedMatrix& w, const float* bias) {
  std::vector<float> y(std::size_t{x.m} * w.n);
  const FloatMode mode;
  kernels.gemm(x, w, bias, y.data(), w.n, 0, w.num_panels());
  return y;
}

std::uint32_t seed() {
  const char* text = std::getenv("OCTAVO_TEST_SEED");
  return text == nullptr ? 20240601U : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace octavo::test
