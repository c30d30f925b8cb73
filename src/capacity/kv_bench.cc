#include "octavo/kv_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capacity/kv_cost.h"
#include "capacity/kv_waste.h"
#include "capacity/workload_profiles.h"
#include "kv/layout.h"
#include "octavo/workload.h"

namespace octavo {
namespace {

constexpr std::uint64_t kDefaultPoolTokens = 131'072;
constexpr std::uint32_t kCostBlockTokens = 16;
constexpr const char* kTrace = "azure-conversation";

struct Strategy {
  KvMemory memory;
  std::uint32_t block_tokens;
};
constexpr Strategy kStrategies[] = {
    {KvMemory::kPaged, 16}, {KvMemory::kPaged, 256}, {KvMemory::kDynamic, 16}, {KvMemory::kStatic, 16}};

std::vector<KvLayerShape> shapes_of(const KvBenchConfig& config) {
  if (config.layers.empty()) return std::vector<KvLayerShape>(32, {8, 128, 0});
  std::vector<KvLayerShape> shapes;
  for (const LayerInfo& layer : config.layers) shapes.push_back({layer.num_kv_heads, layer.head_dim, layer.window});
  return shapes;
}

/// The longest request of the trace, in whole blocks of any size.
std::uint32_t longest_request() {
  const WorkloadProfile& profile = *find_profile(kTrace);
  const double most = profile.prompt.back().tokens + profile.output.back().tokens;
  return static_cast<std::uint32_t>(std::ceil(most / 256)) * 256;
}

Result<WasteRun> plan_run(const KvBenchConfig& config, const Strategy& strategy, std::uint64_t pool_bytes) {
  const KvGroups groups = plan_groups(shapes_of(config), config.kv_type, strategy.block_tokens);
  WasteRun run;
  run.page_bytes = groups.page_bytes;
  run.kv.memory = strategy.memory;
  run.kv.block_tokens = strategy.block_tokens;
  for (const KvGroup& group : groups.groups) run.kv.groups.push_back({group.window});
  run.kv.max_seqs = config.max_num_seqs;
  run.kv.max_model_len = longest_request();
  run.kv.max_step_tokens = config.max_num_batched_tokens;

  const std::uint64_t blocks = std::min(pool_bytes / groups.page_bytes, std::uint64_t{UINT32_MAX} - 1);
  const std::uint64_t needed = blocks_held(groups, run.kv.max_model_len, config.max_num_batched_tokens);
  if (blocks < needed) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--kv-bytes {} is too small: the longest request of the trace, {} tokens, needs {} bytes",
                             pool_bytes, run.kv.max_model_len, needed * groups.page_bytes),
                 "kv_bytes"};
  }
  run.kv.num_blocks = static_cast<std::uint32_t>(blocks) + 1;

  run.scheduler.max_num_seqs = config.max_num_seqs;
  run.scheduler.max_num_batched_tokens = config.max_num_batched_tokens;
  run.scheduler.max_model_len = run.kv.max_model_len;
  run.scheduler.max_queued = config.requests;
  run.scheduler.watermark_blocks = static_cast<std::uint32_t>(EngineConfig{}.watermark * static_cast<double>(blocks));
  return run;
}

}  // namespace

Result<KvBenchReport> bench_kv(const KvBenchConfig& config) {
  if (config.max_num_seqs == 0 || config.max_num_batched_tokens < config.max_num_seqs) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("--max-num-batched-tokens {} is below --max-num-seqs {}: every sequence needs a token a step",
                    config.max_num_batched_tokens, config.max_num_seqs),
        "max_num_batched_tokens"};
  }
  const KvGroups groups = plan_groups(shapes_of(config), config.kv_type, kCostBlockTokens);
  KvBenchReport report;
  report.kv_bytes_per_token = groups.charged_bytes_per_token();
  report.max_model_len = longest_request();

  std::vector<PlannedRequest> requests;
  if (config.requests > 0) {
    OCTAVO_TRY(Workload workload,
               make_workload(kTrace, {.concurrency = 1, .requests = config.requests, .seed = config.seed}));
    requests = std::move(workload.requests);
  }
  for (const PlannedRequest& request : requests) {
    report.mean_prompt_tokens += static_cast<double>(request.prompt_tokens) / config.requests;
    report.mean_output_tokens += static_cast<double>(request.output_tokens) / config.requests;
  }
  const std::uint64_t pool_bytes = config.kv_bytes.value_or(kDefaultPoolTokens * report.kv_bytes_per_token);
  for (const Strategy& strategy : kStrategies) {
    if (requests.empty()) break;
    OCTAVO_TRY(const WasteRun run, plan_run(config, strategy, pool_bytes));
    report.waste.push_back(measure_waste(run, requests));
  }

  std::vector<GroupSpec> specs;
  for (const KvGroup& group : groups.groups) specs.push_back({group.window});
  for (const std::uint32_t running : config.running) {
    for (const bool caching : {false, true}) report.cost.push_back(measure_cost(running, caching, specs));
  }
  return report;
}

}  // namespace octavo
