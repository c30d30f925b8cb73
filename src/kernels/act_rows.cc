#include "kernels/gemm.h"
#include "kernels/kernels.h"

namespace octavo {
namespace {

/// Hands out 64-byte aligned pieces; with a null base it only counts.
struct Carver {
  std::byte* base;
  std::size_t used = 0;

  template <class T>
  T* take(std::size_t count) {
    std::byte* at = base == nullptr ? nullptr : base + used;
    used += (count * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }
};

ActRows carve(ActKind kind, std::uint32_t m, std::uint32_t k, Carver& carver) {
  ActRows rows;
  rows.kind = kind;
  rows.m = m;
  rows.k = k;
  const std::size_t slots = std::size_t{(m + kTileRows - 1) / kTileRows} * (k / kCellInputs) * kTileRows;
  switch (kind) {
    case ActKind::kInt8:
      rows.q = carver.take<std::int8_t>(slots * kCellInputs);
      rows.scale = carver.take<float>(slots);
      rows.sum8 = carver.take<std::int16_t>(slots * 4);
      rows.scaled_sum = carver.take<float>(slots);
      break;
    case ActKind::kBF16: rows.bf16 = carver.take<Bf16>(std::size_t{m} * ((k + 31) / 32 * 32)); break;
    case ActKind::kF32: rows.f32 = carver.take<float>(std::size_t{m} * k); break;
  }
  return rows;
}

}  // namespace

std::size_t act_rows_bytes(ActKind kind, std::uint32_t m, std::uint32_t k) {
  Carver carver{nullptr};
  carve(kind, m, k, carver);
  return carver.used;
}

ActRows make_act_rows(ActKind kind, std::uint32_t m, std::uint32_t k, std::byte* buffer) {
  Carver carver{buffer};
  return carve(kind, m, k, carver);
}

}  // namespace octavo
