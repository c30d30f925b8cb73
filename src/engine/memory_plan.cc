#include "engine/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {
namespace {

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// The most tokens that one sequence can hold in `blocks`, up to `at_most`.
std::uint32_t longest_in(const KvGroups& groups, std::uint64_t blocks, std::uint32_t step_tokens,
                         std::uint32_t at_most) {
  std::uint32_t fits = 0;
  std::uint32_t too_long = at_most + 1;
  while (too_long - fits > 1) {
    const std::uint32_t middle = fits + (too_long - fits) / 2;
    (blocks_held(groups, middle, step_tokens) <= blocks ? fits : too_long) = middle;
  }
  return fits;
}

}  // namespace

Result<KvBudget> plan_kv(const EngineConfig& config, const KvGroups& groups, std::uint32_t context_length,
                         std::uint64_t free_bytes) {
  if (config.max_model_len && (*config.max_model_len < 1 || *config.max_model_len > context_length)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--max-model-len {} must be between 1 and the model's context of {} tokens",
                             *config.max_model_len, context_length),
                 "max_model_len"};
  }
  const std::uint32_t wanted = config.max_model_len.value_or(context_length);
  const std::uint64_t most_blocks = blocks_held(groups, wanted, budget_cap(config)) * config.max_num_seqs;
  const std::uint64_t bytes = config.kv_bytes.value_or(free_bytes / 2);
  const std::uint64_t usable = std::min({bytes / groups.page_bytes, most_blocks, std::uint64_t{UINT32_MAX} - 1});

  KvBudget budget;
  budget.num_blocks = static_cast<std::uint32_t>(usable) + 1;
  budget.max_model_len = longest_in(groups, usable, budget_cap(config), wanted);
  if (budget.max_model_len == 0 || (config.max_model_len && budget.max_model_len < wanted)) {
    const std::uint64_t need = blocks_held(groups, wanted, budget_cap(config)) * groups.page_bytes;
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

}  // namespace octavo
