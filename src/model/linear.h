// Matrix products of one step as parallel regions: rows are prepared once per activation kind, then any list of
// matrices that reads them is one region over their panels (q, k and v; gate and up), whatever their formats.
//
// Threads: one caller; work inside is spread over the pool. Tiles only partition work and never change bits.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace octavo {

/// Calls body(begin, end) over [0, rows) in parallel. A few rows run on the caller: a region would cost more.
template <class Body>
void for_row_tiles(ThreadPool& pool, std::uint32_t rows, const Body& body) {
  constexpr std::uint32_t kAlone = 4;
  const std::uint32_t tile = rows <= kAlone ? std::max(rows, 1U) : std::max(kAlone, rows / (pool.size() * 8));
  pool.run((rows + tile - 1) / tile,
           [&](std::uint32_t index, std::uint32_t) { body(index * tile, std::min(index * tile + tile, rows)); });
}

/// y = x w^T + bias, for the rows last prepared.
struct Product {
  const PackedMatrix* w;
  const float* bias;  // [n] or nullptr
  float* y;           // [m, n]
};

class Linear {
 public:
  using Readers = std::initializer_list<const PackedMatrix*>;

  /// `kinds`: a bit per ActKind that any matrix of the model multiplies with.
  Linear(const Kernels& kernels, ThreadPool& pool, std::uint32_t max_rows, std::uint32_t max_width,
         std::uint32_t kinds);
  [[nodiscard]] static std::uint64_t storage_bytes(std::uint32_t max_rows, std::uint32_t max_width,
                                                   std::uint32_t kinds);

  [[nodiscard]] std::span<std::byte> memory() const { return {storage_.data(), storage_.size()}; }

  /// fill(row) computes row `row` of x [m, k] in place; then it is quantised or rounded as `readers` need it.
  template <class Fill>
  void prepare(const float* x, std::uint32_t m, std::uint32_t k, Readers readers, const Fill& fill) {
    start(m, k, readers);
    for_row_tiles(pool_, m, [&](std::uint32_t begin, std::uint32_t end) {
      for (std::uint32_t i = begin; i < end; ++i) fill(i);
      for (ActRows& rows : acts_) {
        if (rows.k != 0) kernels_.prepare_rows(x, k, rows, begin, end);
      }
    });
  }
  void multiply(std::initializer_list<Product> products);

 private:
  void start(std::uint32_t m, std::uint32_t k, Readers readers);

  const Kernels& kernels_;
  ThreadPool& pool_;
  AlignedBuffer storage_;
  std::array<std::byte*, 3> act_storage_{};  // by ActKind
  std::array<ActRows, 3> acts_{};            // by ActKind; k = 0: not wanted by the readers
};

}  // namespace octavo
