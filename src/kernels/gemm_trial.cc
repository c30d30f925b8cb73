#include "kernels/gemm_trial.h"

#include <chrono>
#include <cstring>
#include <vector>

#include "kernels/entries.h"
#include "kernels/gemm.h"
#include "kernels/pack.h"

namespace octavo {
namespace {

constexpr std::uint32_t kOutputs = 64, kInputs = 256;

class Random {
 public:
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  /// A float's high half: any sign and leading digits.
  std::uint16_t high_half(GemmTrial::Exponents e) {
    const std::uint32_t bits = next();
    return static_cast<std::uint16_t>((bits & 0x807F) | (e.low + (bits >> 16) % e.span) << 7);
  }

 private:
  std::uint64_t state_ = 1;
};

/// f16 numbers near 1/16 in a block format's header, anything in its cells.
void fill_blocks(Random& random, WeightFormat format, std::byte* panel) {
  const CellLayout layout = cell_layout(format);
  const std::uint32_t header = group_header_bytes(layout, kGroupCells);
  for (std::uint32_t i = 0; i < header; i += 2) {
    const auto scale = static_cast<std::uint16_t>(0x2C00 | (random.next() & 0x83FF));
    std::memcpy(panel + i, &scale, 2);
  }
  for (std::uint32_t i = 0; i < kGroupCells * layout.cell_bytes; ++i) {
    panel[header + i] = static_cast<std::byte>(random.next());
  }
}

}  // namespace

static_assert(kInputs == kGroupCells * kCellInputs, "a panel of the trial is one group");

GemmTrial::GemmTrial(WeightFormat format, std::uint32_t rows, Exponents exponents)
    : weights_(panel_bytes(format, kInputs) * (kOutputs / kPanelLanes)),
      rows_(act_rows_bytes(act_kind_of(format), rows, kInputs)),
      outputs_{AlignedBuffer(rows * kOutputs * sizeof(float)), AlignedBuffer(rows * kOutputs * sizeof(float))},
      w_{weights_.data(), panel_bytes(format, kInputs), kOutputs, kInputs, format},
      x_(make_act_rows(act_kind_of(format), rows, kInputs, rows_.data())) {
  Random random;
  if (format == WeightFormat::kBF16) {
    for (std::size_t i = 0; i < weights_.size() / 2; ++i) weights_.as<Bf16>()[i] = random.high_half(exponents);
    for (std::size_t i = 0; i < std::size_t{rows} * kInputs; ++i) x_.bf16[i] = random.high_half(exponents);
    return;
  }
  for (std::uint32_t p = 0; p < kOutputs / kPanelLanes; ++p) {
    fill_blocks(random, format, weights_.data() + p * w_.panel_bytes);
  }
  std::vector<float> x(std::size_t{rows} * kInputs);
  for (float& value : x) value = static_cast<float>(static_cast<std::int32_t>(random.next())) * 0x1p-31F;
  avx2::prepare_rows(x.data(), kInputs, x_, 0, rows);
}

void GemmTrial::run(Gemm gemm, bool second) {
  gemm(x_, w_, nullptr, outputs_[second ? 1 : 0].as<float>(), kOutputs, 0, kOutputs / kPanelLanes);
}

bool GemmTrial::same() const { return std::memcmp(outputs_[0].data(), outputs_[1].data(), outputs_[0].size()) == 0; }

double GemmTrial::seconds(Gemm gemm) {
  const auto start = std::chrono::steady_clock::now();
  run(gemm, false);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace octavo
