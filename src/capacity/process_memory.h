// What a serving process takes beside weights, step buffers and KV: planned, so that nothing resident is a surprise.
#pragma once
#include <cstdint>
#include <vector>

#include "octavo/config.h"
#include "octavo/model_shape.h"
#include "octavo/planner.h"

namespace octavo {

/// Code, tokenizer, sampling, requests, stacks: none depends on the pool.
[[nodiscard]] std::vector<MemoryTag> process_memory(const ModelShape& model, const EngineConfig& config,
                                                    std::uint32_t threads);

[[nodiscard]] MemoryTag page_tables(std::uint64_t mapped_bytes);

/// Of the KV manager, for a pool of `num_blocks`.
[[nodiscard]] std::uint64_t bookkeeping_bytes(const EngineConfig& config, std::uint64_t num_blocks);

}  // namespace octavo
