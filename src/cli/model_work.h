// What a model has to compute and to read, against what the probed machine can.
#pragma once
#include <cstdint>

#include "octavo/engine.h"
#include "octavo/probe.h"
#include "octavo/result.h"

namespace octavo {

/// Multiply-adds of the matrix products one token goes through, the output head apart.
[[nodiscard]] double layer_macs(const ModelInfo& model);

/// The peak that most weights multiply at.
[[nodiscard]] const PeakRate& linear_peak(const ModelInfo& model, const ProbeReport& peaks, Numerics numerics);

/// The bandwidth probed for reading `bytes` again and again, as far as memory has room to try.
[[nodiscard]] Result<ReadRate> read_rate_at(std::uint64_t bytes, std::uint32_t threads);

}  // namespace octavo
