#include "model/linear.h"

#include "base/check.h"

namespace octavo {
namespace {

constexpr std::array kKinds = {ActKind::kInt8, ActKind::kBF16, ActKind::kF32};
constexpr std::size_t kMaxProducts = 3;

constexpr std::size_t index_of(ActKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

std::uint64_t Linear::storage_bytes(std::uint32_t max_rows, std::uint32_t max_width, std::uint32_t kinds) {
  std::uint64_t bytes = 0;
  for (const ActKind kind : kKinds) {
    if ((kinds >> index_of(kind) & 1) != 0) bytes += act_rows_bytes(kind, max_rows, max_width);
  }
  return bytes;
}

Linear::Linear(const Kernels& kernels, ThreadPool& pool, std::uint32_t max_rows, std::uint32_t max_width,
               std::uint32_t kinds)
    : kernels_(kernels), pool_(pool), storage_(storage_bytes(max_rows, max_width, kinds)) {
  std::byte* next = storage_.data();
  for (const ActKind kind : kKinds) {
    if ((kinds >> index_of(kind) & 1) == 0) continue;
    act_storage_[index_of(kind)] = next;
    next += act_rows_bytes(kind, max_rows, max_width);
  }
}

void Linear::start(std::uint32_t m, std::uint32_t k, Readers readers) {
  for (ActRows& rows : acts_) rows.k = 0;
  for (const PackedMatrix* w : readers) {
    const ActKind kind = act_kind_of(w->format);
    acts_[index_of(kind)] = make_act_rows(kind, m, k, act_storage_[index_of(kind)]);
  }
}

void Linear::multiply(std::initializer_list<Product> products) {
  OCTAVO_CHECK(products.size() <= kMaxProducts, "too many products for one region");
  std::uint32_t panels = 0;
  for (const Product& p : products) panels += p.w->num_panels();
  const std::uint32_t per_tile = std::clamp(panels / (pool_.size() * 8), 1U, 64U);

  std::array<std::uint32_t, kMaxProducts> first_tile{};  // of each product
  std::uint32_t tiles = 0;
  std::size_t count = 0;
  for (const Product& p : products) {
    first_tile[count++] = tiles;
    tiles += (p.w->num_panels() + per_tile - 1) / per_tile;
  }
  pool_.run(tiles, [&](std::uint32_t tile, std::uint32_t) {
    std::size_t index = count - 1;
    while (tile < first_tile[index]) --index;
    const Product& p = products.begin()[index];
    const std::uint32_t begin = (tile - first_tile[index]) * per_tile;
    kernels_.gemm(acts_[index_of(act_kind_of(p.w->format))], *p.w, p.bias, p.y, p.w->n, begin,
                  std::min(begin + per_tile, p.w->num_panels()));
  });
}

}  // namespace octavo
