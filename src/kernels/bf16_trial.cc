#include "kernels/bf16_trial.h"

#include <algorithm>

#include "base/float_mode.h"
#include "kernels/entries.h"
#include "kernels/gemm_trial.h"

namespace octavo {
namespace {

std::string measure() {
  const FloatMode mode;
  for (const GemmTrial::Exponents e : {GemmTrial::Exponents{0, 70}, {60, 110}, {120, 12}}) {  // denormals, wide, near 1
    GemmTrial trial(WeightFormat::kBF16, 16, e);
    trial.run(avx512::gemm, false);
    trial.run(avx512bf16::gemm, true);
    if (!trial.same()) return "vdpbf16ps rounds in another order on this CPU";
  }
  GemmTrial trial(WeightFormat::kBF16, 16, {120, 12});
  double fma = 1, dot = 1;  // seconds; the best of a few, in turn
  for (int i = 0; i < 8; ++i) {
    fma = std::min(fma, trial.seconds(avx512::gemm));
    dot = std::min(dot, trial.seconds(avx512bf16::gemm));
  }
  return dot < fma ? "" : "vdpbf16ps is no faster than FMA on this CPU";
}

}  // namespace

const std::string& bf16_trial() {
  static const std::string result = measure();
  return result;
}

}  // namespace octavo
