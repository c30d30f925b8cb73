#include "octavo/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "capacity/memory_plan.h"
#include "capacity/simulator.h"
#include "kv/layout.h"

namespace octavo {
namespace {

constexpr double kLeastRate = 1e-4, kMostRate = 1e4;  // per second
constexpr std::uint32_t kOtherWindow = 1024;
constexpr double kRatePrecision = 1.02;

/// What load() would decide for this model and memory.
ServingFacts facts_of(const EngineConfig& config, const MemoryPlan& memory, const KvGroups& groups,
                      const StepPrice& price) {
  ServingFacts facts;
  for (const KvGroup& group : groups.groups) facts.groups.push_back({group.window});
  facts.num_blocks = memory.num_blocks;
  facts.host_blocks = memory.num_host_blocks;
  facts.max_model_len = memory.longest_request;
  facts.fingerprint = "planned";
  facts.costs = price.costs();
  facts.copy_per_block = Nanos(price.copy_block_ns());
  const StepTime time(facts.costs, price.counter().windows());
  facts.max_num_batched_tokens = settle_budget(config, time, budget_cap(config)).tokens;
  return facts;
}

}  // namespace

Result<SimulateReport> simulate(const ModelShape& model, const SimulateConfig& config, const Workload& workload) {
  OCTAVO_CHECK_OK(check_runnable(model));
  if (workload.requests.empty()) {
    return Error{ErrorCode::kInvalidArgument, workload.name + ": there is no request in it", "workload"};
  }
  OCTAVO_TRY(const MemoryPlan memory,
             plan_memory(model, {config.engine, config.memory, config.engine.threads, {}, {}}));
  if (memory.num_blocks == 0 || memory.longest_request == 0) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("nothing can be served: {}; what could: {}", memory.why_not, memory.nearest), "memory"};
  }
  std::vector<std::uint32_t> windows;
  std::vector<KvLayerShape> shapes;
  for (const LayerShape& layer : model.layers) {
    windows.push_back(layer.window);
    shapes.push_back({layer.num_kv_heads, layer.head_dim, layer.window});
  }
  StepCurve curve = config.steps;
  if (const char* fault = fault_of(curve)) return Error{ErrorCode::kInvalidArgument, fault, "machine"};
  const KvGroups groups = plan_groups(shapes, config.engine.kv_type, config.engine.block_tokens);
  const StepPrice price(std::move(curve), window_shares(windows), groups.page_bytes);
  const ServingFacts facts = facts_of(config.engine, memory, groups, price);
  const double place = static_cast<double>(groups.page_bytes) / groups.block_tokens;
  const auto run = [&](const EngineConfig& engine) {
    Simulator simulator({engine, facts, price, config.goal, place});
    simulator.run(workload);
    return simulator.report();
  };
  // Where no prompt shares anything, only who was preempted finds blocks by their names. Without preemption both runs
  // are the same, and the one without names takes half the time.
  const bool shares = std::ranges::any_of(workload.requests, [](const auto& r) { return !r.prefix_ids.empty(); });
  EngineConfig nameless = config.engine;
  if (!shares) nameless.prefix_caching = false;
  SimulateReport report = run(nameless);
  if (report.preemptions > 0 && !shares && prefix_caching_on(config.engine)) report = run(config.engine);
  report.memory = memory;
  report.max_num_batched_tokens = facts.max_num_batched_tokens;
  return report;
}

std::vector<WhatIf> what_if(const ModelShape& model, const SimulateConfig& config, const Workload& workload) {
  std::vector<WhatIf> rows;
  const auto run = [&](const ModelShape& shape, std::string change, const SimulateConfig& changed) {
    Result<SimulateReport> report = simulate(shape, changed, workload);
    WhatIf row{std::move(change), {}, {}};
    if (report)
      row.report = std::move(*report);
    else
      row.why_not = report.error().message;
    rows.push_back(std::move(row));
  };
  const auto with = [&](const char* change, auto&& edit) {
    SimulateConfig changed = config;
    edit(changed.engine);
    run(model, change, changed);
  };
  run(model, "as configured", config);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16}) {
    if (type == config.engine.kv_type) continue;
    SimulateConfig changed = config;
    changed.engine.kv_type = type;
    const double bytes = 1.0 * kv_element_bytes(type) / kv_element_bytes(config.engine.kv_type);
    changed.steps.single_key_ns *= bytes, changed.steps.chunk_key_ns *= bytes;
    run(model, fmt::format("KV {}", kv_type_name(type)), changed);
  }
  for (const std::uint32_t tokens : {16U, 64U, 256U}) {
    if (tokens == config.engine.block_tokens) continue;
    with(fmt::format("blocks of {}", tokens).c_str(), [&](EngineConfig& e) { e.block_tokens = tokens; });
  }
  const EngineConfig& engine = config.engine;
  if (engine.batching != Batching::kStatic) {
    with("static batches", [](EngineConfig& e) { e.batching = Batching::kStatic; });
  }
  struct Strategy {
    KvMemory memory;
    const char* name;
  };
  for (const Strategy& s : {Strategy{KvMemory::kPaged, "paged memory"},
                            {KvMemory::kDynamic, "dynamic memory"},
                            {KvMemory::kStatic, "static memory"}}) {
    if (s.memory == engine.kv_memory) continue;
    with(s.name, [&](EngineConfig& e) {
      e.kv_memory = s.memory;
      if (s.memory != KvMemory::kPaged) e.prefix_caching = false;
    });
  }
  if (model.context_length > kOtherWindow) {
    ModelShape windowed = model;
    for (LayerShape& layer : windowed.layers) layer.window = layer.window == 0 ? kOtherWindow : layer.window;
    if (windowed.layers != model.layers) run(windowed, fmt::format("windows of {}", kOtherWindow), config);
  }
  if (engine.policy != PolicyKind::kShortestRemaining) {
    with("shortest first", [](EngineConfig& e) { e.policy = PolicyKind::kShortestRemaining; });
  }
  if (prefix_caching_on(engine)) with("no prefix caching", [](EngineConfig& e) { e.prefix_caching = false; });
  if (engine.preemption != PreemptionMode::kRecompute) {
    with("no swap", [](EngineConfig& e) { e.preemption = PreemptionMode::kRecompute; });
  }
  return rows;
}

Result<RateSearch> largest_rate(const ModelShape& model, const SimulateConfig& config, const std::string& source,
                                const Arrivals& arrivals) {
  if (!config.goal.ttft && !config.goal.tpot && !config.goal.e2e) {
    return Error{ErrorCode::kInvalidArgument, "a largest rate needs something to keep: give a goal (--goal ttft=500)",
                 "goal"};
  }
  if (arrivals.concurrency) {
    return Error{ErrorCode::kInvalidArgument,
                 "a closed loop has no rate to search: leave out the concurrency (--concurrency)", "concurrency"};
  }
  RateSearch best;
  const auto good = [&](double rate) -> Result<bool> {
    Arrivals at = arrivals;
    at.rate = rate;
    OCTAVO_TRY(const Workload workload, make_workload(source, at));
    OCTAVO_TRY(const SimulateReport report, simulate(model, config, workload));
    ++best.runs;
    if (report.good_share < kGoodShare) return false;
    best.rate = rate, best.good_share = report.good_share;
    return true;
  };
  double keeps = 0, fails = kMostRate;
  for (double rate = arrivals.rate.value_or(1); rate >= kLeastRate && rate <= kMostRate;) {
    OCTAVO_TRY(const bool kept, good(rate));
    (kept ? keeps : fails) = rate;
    if (keeps > 0 && fails < kMostRate) break;
    rate = kept ? rate * 2 : rate / 2;
  }
  while (keeps > 0 && fails > keeps * kRatePrecision) {
    const double middle = std::sqrt(keeps * fails);
    OCTAVO_TRY(const bool kept, good(middle));
    (kept ? keeps : fails) = middle;
  }
  return best;
}

}  // namespace octavo
