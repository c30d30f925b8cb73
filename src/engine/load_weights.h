// The packed weights of a checkpoint: mapped from the pack cache, or packed into it, or, where it does not serve, in
// memory.
#pragma once
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "load/pack_check.h"
#include "model/checkpoint.h"
#include "model/weights.h"
#include "octavo/config.h"
#include "octavo/engine.h"
#include "octavo/result.h"

namespace octavo {

struct LoadedWeights {
  std::unique_ptr<Weights> weights;
  std::string source_sha256;         // of all of the model's bytes, see load/source_key.h
  std::unique_ptr<PackCheck> check;  // of a pack that was there before; nullptr: nothing is left to check
  WeightsReport report;
};

/// Refuses a model that changes while it is read; that memory holds it was planned before. The cache's troubles are
/// told in the report and cost time alone.
[[nodiscard]] Result<LoadedWeights> load_weights(const EngineConfig& config, const Checkpoint& checkpoint,
                                                 ThreadPool& pool, const Progress& progress);

}  // namespace octavo
