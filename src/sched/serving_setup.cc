#include "sched/serving_setup.h"

namespace octavo {
namespace {

constexpr Micros kWaitPerToken = std::chrono::milliseconds(10);

}  // namespace

bool prefix_caching_on(const EngineConfig& config) {
  return config.prefix_caching.value_or(config.kv_memory == KvMemory::kPaged && config.kv_cache);
}

AutoBudget settle_budget(const EngineConfig& config, const StepTime& time, std::uint32_t cap) {
  const std::optional<std::uint32_t> given = config.max_num_batched_tokens;
  return auto_budget(time, given.value_or(config.max_num_seqs), given.value_or(cap));
}

KvConfig kv_config(const EngineConfig& config, const ServingFacts& facts) {
  KvConfig kv;
  kv.block_tokens = config.block_tokens;
  kv.num_blocks = facts.num_blocks + 1;
  kv.groups = facts.groups;
  kv.max_seqs = config.max_num_seqs;
  kv.max_model_len = facts.max_model_len;
  kv.max_step_tokens = facts.max_num_batched_tokens;
  kv.memory = config.kv_memory;
  kv.prefix_caching = prefix_caching_on(config);
  kv.host_blocks = facts.host_blocks;
  kv.events = !config.trace_file.empty();
  return kv;
}

SchedulerConfig scheduler_config(const EngineConfig& config, const ServingFacts& facts) {
  SchedulerConfig scheduler;
  scheduler.max_num_seqs = config.max_num_seqs;
  scheduler.max_num_batched_tokens = facts.max_num_batched_tokens;
  scheduler.long_prefill_token_threshold = config.long_prefill_token_threshold;
  scheduler.max_model_len = facts.max_model_len;
  scheduler.max_queued = config.max_queued;
  scheduler.watermark_blocks = static_cast<std::uint32_t>(config.watermark * facts.num_blocks);
  scheduler.recompute_ns_per_token = static_cast<std::uint64_t>(facts.costs.token);
  scheduler.swap_ns_per_block = static_cast<std::uint64_t>(facts.copy_per_block.count());
  scheduler.batching = config.batching;
  scheduler.preemption = config.preemption;
  scheduler.discard_kv_after_sample = !config.kv_cache;
  scheduler.model_fingerprint = facts.fingerprint;
  return scheduler;
}

BudgetLimits budget_limits(const EngineConfig& config, const ServingFacts& facts) {
  BudgetLimits limits;
  limits.max_tokens = facts.max_num_batched_tokens;
  limits.max_per_prompt = config.long_prefill_token_threshold;
  limits.target_tpot = config.target_tpot;
  limits.target_ttft = config.target_ttft;
  return limits;
}

std::unique_ptr<Policy> make_policy(const EngineConfig& config) {
  switch (config.policy) {
    case PolicyKind::kPriority: return std::make_unique<Priority>(config.aging);
    case PolicyKind::kShortestRemaining: return std::make_unique<ShortestRemaining>(kWaitPerToken);
    case PolicyKind::kFcfs: break;
  }
  return std::make_unique<Fcfs>();
}

}  // namespace octavo
