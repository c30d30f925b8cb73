#include "kernels/bf16_trial.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/float_mode.h"
#include "base/memory.h"
#include "kernels/entries.h"
#include "kernels/pack.h"

namespace octavo {
namespace {

constexpr std::uint32_t kRows = 16, kOutputs = 64, kInputs = 256;

/// Random bf16 numbers of both signs with exponents in [low, low + span).
void fill(Bf16* out, std::size_t count, std::uint32_t low, std::uint32_t span, std::uint64_t& state) {
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto bits = static_cast<std::uint32_t>(state >> 32);
    out[i] = static_cast<Bf16>((bits & 0x807F) | (low + (bits >> 16) % span) << 7);
  }
}

struct Trial {
  AlignedBuffer weights, rows, fma_out, dot_out;
  PackedMatrix w;
  ActRows x;

  Trial()
      : weights(panel_bytes(WeightFormat::kBF16, kInputs) * (kOutputs / 16)),
        rows(act_rows_bytes(ActKind::kBF16, kRows, kInputs)),
        fma_out(kRows * kOutputs * sizeof(float)),
        dot_out(kRows * kOutputs * sizeof(float)),
        w{weights.data(), panel_bytes(WeightFormat::kBF16, kInputs), kOutputs, kInputs, WeightFormat::kBF16},
        x(make_act_rows(ActKind::kBF16, kRows, kInputs, rows.data())) {}

  double run(decltype(Kernels::gemm) gemm, const AlignedBuffer& out) const {
    const auto start = std::chrono::steady_clock::now();
    gemm(x, w, nullptr, out.as<float>(), kOutputs, 0, kOutputs / 16);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

std::string measure() {
  const FloatMode mode;
  Trial trial;
  std::uint64_t state = 1;
  const std::uint32_t exponents[][2] = {{120, 12}, {60, 110}, {0, 70}};  // near 1, wide, with denormals
  for (const auto& [low, span] : exponents) {
    fill(trial.weights.as<Bf16>(), kOutputs * kInputs, low, span, state);
    fill(trial.x.bf16, kRows * kInputs, low, span, state);
    trial.run(avx512::gemm, trial.fma_out);
    trial.run(avx512bf16::gemm, trial.dot_out);
    if (std::memcmp(trial.fma_out.data(), trial.dot_out.data(), trial.fma_out.size()) != 0) {
      return "vdpbf16ps rounds in another order on this CPU";
    }
  }
  double fma = 1, dot = 1;  // seconds; the best of a few, in turn
  for (int i = 0; i < 8; ++i) {
    fma = std::min(fma, trial.run(avx512::gemm, trial.fma_out));
    dot = std::min(dot, trial.run(avx512bf16::gemm, trial.dot_out));
  }
  return dot < fma ? "" : "vdpbf16ps is no faster than FMA on this CPU";
}

}  // namespace

const std::string& bf16_trial() {
  static const std::string result = measure();
  return result;
}

}  // namespace octavo
