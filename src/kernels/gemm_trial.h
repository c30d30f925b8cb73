// Two kernels of one contract on the same random weights and rows: do they agree on bits, and which is faster here?
// Asked once at start, where a CPU's flags alone do not tell.
#pragma once
#include <cstdint>

#include "base/memory.h"
#include "kernels/kernels.h"

namespace octavo {

class GemmTrial {
 public:
  using Gemm = decltype(Kernels::gemm);

  /// Scales, and BF16 numbers of weights and rows, have exponents in [low, low + span).
  struct Exponents {
    std::uint32_t low, span;
  };

  GemmTrial(WeightFormat format, std::uint32_t rows, Exponents exponents);

  void run(Gemm gemm, bool second);  // into the first or the second output; no allocation
  [[nodiscard]] bool same() const;   // are both outputs equal on bits?
  [[nodiscard]] double seconds(Gemm gemm);

 private:
  AlignedBuffer weights_, rows_, outputs_[2];
  PackedMatrix w_;
  ActRows x_;
};

}  // namespace octavo
