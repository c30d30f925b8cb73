#include "capacity/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "kv/kv_types.h"

namespace octavo {
namespace {

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

std::vector<KvLayerShape> kv_shapes(const ModelShape& model) {
  std::vector<KvLayerShape> shapes;
  for (const LayerShape& layer : model.layers) {
    const bool latent = layer.latent_dim != 0;
    shapes.push_back(
        {latent ? 1 : layer.num_kv_heads, latent ? layer.latent_dim : layer.head_dim, layer.window, latent});
  }
  return shapes;
}

/// Runs keep what is behind a window, and are as long as they were taken.
std::uint64_t blocks_of(const EngineConfig& config, const KvGroups& groups, std::uint64_t tokens,
                        std::uint64_t max_model_len) {
  if (config.kv_memory == KvMemory::kPaged) return blocks_held(groups, tokens, budget_cap(config));
  constexpr std::uint32_t kChunk = KvConfig{}.chunk_tokens;
  const std::uint64_t taken = config.kv_memory == KvMemory::kStatic
                                  ? std::max(tokens, max_model_len)
                                  : std::min((tokens + kChunk - 1) / kChunk * kChunk, std::max(tokens, max_model_len));
  return (taken + groups.block_tokens - 1) / groups.block_tokens * groups.groups.size();
}

std::uint32_t longest_in(const EngineConfig& config, const KvGroups& groups, std::uint64_t blocks,
                         std::uint32_t at_most) {
  std::uint32_t fits = 0;
  std::uint32_t too_long = at_most + 1;
  while (too_long - fits > 1) {
    const std::uint32_t middle = fits + (too_long - fits) / 2;
    (blocks_of(config, groups, middle, middle) <= blocks ? fits : too_long) = middle;
  }
  return fits;
}

std::uint64_t kv_space(const EngineConfig& config, const KvGroups& groups, std::uint64_t free_bytes) {
  const std::uint64_t free = free_bytes - std::min(free_bytes, groups.page_bytes);
  return config.kv_bytes.value_or(static_cast<std::uint64_t>(static_cast<double>(free) * config.kv_fraction));
}

Result<KvBudget> plan_kv(const EngineConfig& config, const KvGroups& groups, std::uint32_t context_length,
                         std::uint64_t free_bytes) {
  const std::uint32_t wanted = config.max_model_len.value_or(context_length);
  const std::uint64_t most_blocks = blocks_of(config, groups, wanted, wanted) * config.max_num_seqs;
  const std::uint64_t bytes = kv_space(config, groups, free_bytes);
  const std::uint64_t usable = std::min({bytes / groups.page_bytes, most_blocks, std::uint64_t{UINT32_MAX} - 1});

  KvBudget budget;
  budget.num_blocks = static_cast<std::uint32_t>(usable) + 1;
  budget.max_model_len = longest_in(config, groups, usable, wanted);
  if (budget.max_model_len == 0 || (config.max_model_len && budget.max_model_len < wanted)) {
    const std::uint64_t need = blocks_of(config, groups, wanted, wanted) * groups.page_bytes;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a KV pool of {:.1f} MiB holds requests of up to {} tokens, but {} tokens need {:.1f} MiB: "
                    "raise --kv-bytes or lower --max-model-len",
                    mib(bytes), budget.max_model_len, wanted, mib(need)),
        "kv_bytes"};
  }
  if (budget.max_model_len < context_length) {
    budget.max_model_len_reason = config.max_model_len
                                      ? fmt::format("--max-model-len; the model's context is {}", context_length)
                                      : fmt::format("what the KV pool of {:.1f} MiB holds; the model's context is {}",
                                                    mib(bytes), context_length);
  }
  return budget;
}

std::uint32_t host_slots(const EngineConfig& config, const KvGroups& groups, std::uint32_t num_blocks,
                         std::uint64_t left) {
  if (config.preemption == PreemptionMode::kRecompute || !config.kv_cache) return 0;
  const std::uint64_t slots = std::min(config.swap_bytes, left / 2) / groups.page_bytes;
  return static_cast<std::uint32_t>(std::min({slots, std::uint64_t{num_blocks} * 4, std::uint64_t{UINT32_MAX} - 1}));
}

}  // namespace octavo
