// octavo bench preemption: a pool too small for all, with KV that is computed again or kept in host memory.
#include <fmt/format.h>

#include <memory>

#include "cli/bench_claims.h"
#include "cli/commands.h"
#include "cli/format.h"

namespace octavo {
namespace {

double seconds_of(const SideRun& run) { return run.seconds; }

}  // namespace

Result<BenchFinding> measure_preemption(const PreemptionBench& options, const ProbeReport& peaks) {
  OCTAVO_TRY(const Workload workload, make_workload(options.workload));
  EngineOptions engine = options.engine;
  EngineConfig& config = engine.config;
  if (!config.max_model_len) config.max_model_len = longest(workload);
  OCTAVO_TRY(const std::uint64_t small, pool_bytes(engine, options.pool_tokens));
  OCTAVO_TRY(const std::uint64_t roomy, pool_bytes(engine, pool_tokens(workload, 2 * config.block_tokens)));
  if (small >= roomy) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--pool-tokens {} holds all {} requests at once: give less, so that some must make room",
                             options.pool_tokens, workload.requests.size()),
                 "--pool-tokens"};
  }
  const auto tight = [small](PreemptionMode mode) {
    return [small, mode](EngineConfig& c) {
      c.kv_bytes = small;
      c.preemption = mode;
    };
  };
  OCTAVO_TRY(const std::vector<Side> sides,
             load_sides(engine, {{"recompute", tight(PreemptionMode::kRecompute)},
                                 {"swap", tight(PreemptionMode::kSwap)},
                                 {"room for all", [roomy](EngineConfig& c) { c.kv_bytes = roomy; }}}));
  const EngineReport& report = sides.front().engine->report();
  OCTAVO_TRY(const MachineShare machine, MachineShare::make(report, peaks, config.numerics));
  const std::vector<Request> requests = bench_requests(report.model, workload);
  OCTAVO_TRY(const auto runs,
             run_in_turn(sides, options.repeats, "preemption", [&](const Side& side) -> Result<SideRun> {
               if (side.engine->report().prefix_caching) OCTAVO_CHECK_OK(side.engine->reset_prefix_cache());
               return run_side(*side.engine, requests);
             }));

  BenchFinding finding;
  finding.name = "preemption";
  finding.title = "Who makes room when memory is short: computed again, or kept in host memory";
  finding.about =
      "The same requests through a pool that cannot hold all of them to their end, so that some are preempted and come "
      "back. Their keys and values are computed again, or were kept in host memory. Beside them a pool with room for "
      "all: what preemption costs. The tokens are the same.";
  finding.conditions = {
      {"requests", workload.name},
      {"pool", fmt::format("{}, {} tokens in blocks of {}; prefix caching {}", human_bytes(small), options.pool_tokens,
                           report.block_tokens, report.prefix_caching ? "on" : "off")}};
  const std::uint64_t least = runs.back().front().computed_tokens;
  HtmlTable table;
  table.head = {"preempted",   "s",       "best",     "tok/s",          "of machine",
                "preemptions", "to host", "computed", "computed again", "mean latency s"};
  Json results = Json::array();
  BarChart bars{"Time for all requests", "seconds, median", {}, {{"seconds", {}}}};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const Repeated seconds = shortest(runs[i], seconds_of);
    const SideRun& first = runs[i].front();
    const auto again = static_cast<std::int64_t>(first.computed_tokens) - static_cast<std::int64_t>(least);
    const double latency = shortest(runs[i], [](const SideRun& r) { return mean(r.latency_ms); }).median;
    table.rows.push_back(
        {sides[i].name, fmt::format("{:.2f}", seconds.median), fmt::format("{:.2f}", seconds.best),
         fmt::format("{:.1f}", fastest(runs[i], [](const SideRun& r) { return r.tokens_per_s(); }).median),
         percent_text(machine.best(runs[i])), std::to_string(first.preemptions), std::to_string(first.preemptions_swap),
         std::to_string(first.computed_tokens), std::to_string(again), fmt::format("{:.2f}", latency / 1000)});
    bars.labels.push_back(sides[i].name);
    bars.series.front().second.push_back(seconds.median);
    results.push_back(side_json(sides[i].name, runs[i], machine));
    results.back()["computed_again"] = again;
  }
  const Gain swap = gain(runs[0], runs[1], seconds_of), cost = gain(runs[0], runs[2], seconds_of);
  finding.tables.push_back(std::move(table));
  finding.bars.push_back(std::move(bars));
  finding.gain =
      runs[0].front().preemptions == 0
          ? "Nobody was preempted: give fewer --pool-tokens."
          : fmt::format(
                "Swapping is {} times as fast as computing again; the small pool takes {} times as long as room "
                "for all; every token is the same.",
                gain_text(swap), gain_text(cost));
  tell_conditions(finding, report, peaks, options);
  finding.json.update({{"workload", workload.name},
                       {"requests", requests.size()},
                       {"pool_bytes", small},
                       {"pool_tokens", options.pool_tokens},
                       {"prefix_caching", report.prefix_caching},
                       {"results", results},
                       {"swap_gain", gain_json(swap)},
                       {"cost", gain_json(cost)},
                       {"outputs_equal", true}});
  return finding;
}

Command bench_preemption_command(CLI::App& bench) {
  auto options = std::make_shared<PreemptionBench>();
  CLI::App* app = bench.add_subcommand("preemption", "Compare recomputing and swapping the KV of preempted sequences");
  add_workload_options(*app, options->workload);
  add_number(*app, "--pool-tokens", options->pool_tokens, 16, 1U << 30U, "that the small KV pool holds");
  add_claim_options(*app, *options);
  return {app, [app, options]() -> Result<> {
            OCTAVO_CHECK_OK(bench_sets(*app, {"--preemption", "--kv-bytes", "--kv-fraction", "--kv-memory",
                                              "--no-kv-cache", "--batching", "--trace"}));
            return run_claim(*options, [&](const ProbeReport& peaks) { return measure_preemption(*options, peaks); });
          }};
}

}  // namespace octavo
