#include "capacity/check_config.h"

#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "capacity/memory_plan.h"

namespace octavo {
namespace {

using std::chrono::milliseconds;

// Ranks are 64-bit: a virtual arrival of (2^31 steps of priority) * aging must fit.
constexpr milliseconds kMostAging = std::chrono::hours(1);
constexpr milliseconds kMostTarget = std::chrono::hours(1);

Error invalid(const char* field, std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message), field};
}

Result<> check_batch(const EngineConfig& config, std::uint32_t context_length) {
  const std::uint32_t block = config.block_tokens;
  if (block < 16 || block > 256 || (block & (block - 1)) != 0) {
    return invalid("block_size", fmt::format("--block-size {} must be 16, 32, 64, 128 or 256", block));
  }
  if (config.max_num_seqs < 1 || config.max_num_seqs > 4096) {
    return invalid("max_num_seqs", fmt::format("--max-num-seqs {} must be between 1 and 4096", config.max_num_seqs));
  }
  if (budget_cap(config) < config.max_num_seqs || budget_cap(config) > 65536) {
    return invalid(
        "max_num_batched_tokens",
        fmt::format("--max-num-batched-tokens {} must be between --max-num-seqs ({}) and 65536: every running "
                    "sequence gets at least one token a step",
                    budget_cap(config), config.max_num_seqs));
  }
  if (config.max_model_len && (*config.max_model_len < 1 || *config.max_model_len > context_length)) {
    return invalid("max_model_len", fmt::format("--max-model-len {} must be between 1 and the model's context of {} "
                                                "tokens",
                                                *config.max_model_len, context_length));
  }
  if (config.max_queued < 1) {
    return invalid("max_queued", "--max-queued 0 must be at least 1: every request waits before it runs");
  }
  if (config.threads > 1024) {
    return invalid("threads", fmt::format("--threads {} must be between 1 and 1024, or 0 for all", config.threads));
  }
  return Ok{};
}

Result<> check_times(const EngineConfig& config) {
  if (config.aging.count() < 0 || config.aging > kMostAging) {
    return invalid("aging", fmt::format("--aging-ms {} must be between 0 (never) and {}", config.aging.count(),
                                        kMostAging.count()));
  }
  struct Target {
    const char *field, *flag;
    std::optional<milliseconds> value;
  };
  for (const Target& t : {Target{"target_tpot", "--target-tpot-ms", config.target_tpot},
                          Target{"target_ttft", "--target-ttft-ms", config.target_ttft}}) {
    if (t.value && (t.value->count() < 1 || *t.value > kMostTarget)) {
      return invalid(t.field,
                     fmt::format("{} {} must be between 1 and {}", t.flag, t.value->count(), kMostTarget.count()));
    }
  }
  return Ok{};
}

Result<> check_memory(const EngineConfig& config) {
  if (!(config.kv_fraction > 0 && config.kv_fraction <= 1)) {
    return invalid("kv_fraction", fmt::format("--kv-fraction {} must be above 0 and at most 1", config.kv_fraction));
  }
  if (!(config.watermark >= 0 && config.watermark < 1)) {
    return invalid("watermark", fmt::format("--watermark {} must be at least 0 and below 1", config.watermark));
  }
  if (config.prefix_caching.value_or(false) && (config.kv_memory != KvMemory::kPaged || !config.kv_cache)) {
    return invalid("prefix_caching", "--prefix-caching needs --kv-memory paged and a KV cache: only pages are shared");
  }
  return Ok{};
}

}  // namespace

Result<> check_config(const EngineConfig& config, std::uint32_t context_length) {
  OCTAVO_CHECK_OK(check_batch(config, context_length));
  OCTAVO_CHECK_OK(check_times(config));
  return check_memory(config);
}

}  // namespace octavo
