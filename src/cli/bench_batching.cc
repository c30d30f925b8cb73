// octavo bench batching: closed batches against continuous ones, for the same requests.
#include <fmt/format.h>

#include <memory>

#include "cli/bench_claims.h"
#include "cli/commands.h"

namespace octavo {
namespace {

double rate_of(const SideRun& run) { return run.tokens_per_s(); }
double latency_of(const SideRun& run) { return mean(run.latency_ms); }

}  // namespace

Result<BenchFinding> measure_batching(const BatchingBench& options, const ProbeReport& peaks) {
  OCTAVO_TRY(const Workload workload, make_workload(options.workload));
  EngineOptions engine = options.engine;
  EngineConfig& config = engine.config;
  if (!config.kv_bytes) {
    OCTAVO_TRY(config.kv_bytes, pool_bytes(engine, pool_tokens(workload, 2 * config.block_tokens)));
  }
  config.prefix_caching = false;  // every run computes every prompt
  OCTAVO_TRY(const std::vector<Side> sides,
             load_sides(engine, {{"static", [](EngineConfig& c) { c.batching = Batching::kStatic; }},
                                 {"continuous", [](EngineConfig& c) { c.batching = Batching::kContinuous; }}}));
  const EngineReport& report = sides.front().engine->report();
  OCTAVO_TRY(const MachineShare machine, MachineShare::make(report, peaks, config.numerics));
  const std::vector<Request> requests = bench_requests(report.model, workload);
  OCTAVO_TRY(const auto runs, run_in_turn(sides, options.repeats, "batching",
                                          [&](const Side& side) { return run_side(*side.engine, requests); }));

  BenchFinding finding;
  finding.name = "batching";
  finding.title = "Batching: closed batches, or sequences that come and go";
  finding.about =
      "The same requests of mixed lengths, all waiting from the start. A static batch takes as many as there are seats "
      "and nobody more until its longest has ended; in a continuous one a free seat is taken at the next step. The "
      "tokens are the same. Latency counts from the start of the run, waiting included.";
  finding.conditions = {
      {"requests", workload.name},
      {"seats", fmt::format("{} sequences, {} tokens a step", report.max_num_seqs, report.max_num_batched_tokens)}};
  HtmlTable table;
  table.head = {"batching", "tok/s",         "best",        "of machine", "mean latency s",
                "best",     "p99 latency s", "mean TTFT s", "steps",      "mean running"};
  Json results = Json::array();
  BarChart bars{"Output tokens per second", "tok/s, median", {}, {{"tok/s", {}}}};
  std::vector<std::pair<std::string, std::vector<double>>> latencies;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const Repeated rate = fastest(runs[i], rate_of), latency = shortest(runs[i], latency_of);
    const double p99 = shortest(runs[i], [](const SideRun& r) { return quantile(r.latency_ms, 0.99); }).median;
    const double ttft = shortest(runs[i], [](const SideRun& r) { return mean(r.ttft_ms); }).median;
    table.rows.push_back({sides[i].name, fmt::format("{:.1f}", rate.median), fmt::format("{:.1f}", rate.best),
                          percent_text(machine.best(runs[i])), fmt::format("{:.2f}", latency.median / 1000),
                          fmt::format("{:.2f}", latency.best / 1000), fmt::format("{:.2f}", p99 / 1000),
                          fmt::format("{:.2f}", ttft / 1000), std::to_string(runs[i].front().steps),
                          fmt::format("{:.1f}", runs[i].front().mean_running)});
    bars.labels.push_back(sides[i].name);
    bars.series.front().second.push_back(rate.median);
    std::vector<double> seconds;
    for (const double ms : runs[i].front().latency_ms) seconds.push_back(ms / 1000);
    latencies.emplace_back(sides[i].name, std::move(seconds));
    results.push_back(side_json(sides[i].name, runs[i], machine));
    results.back()["mean_running"] = runs[i].front().mean_running;
  }
  const Gain faster = gain(runs[1], runs[0], rate_of), sooner = gain(runs[0], runs[1], latency_of);
  finding.tables.push_back(std::move(table));
  finding.bars.push_back(std::move(bars));
  finding.curves.push_back(quantile_chart("Latency of a request", {"seconds"}, latencies));
  finding.gain = fmt::format(
      "Continuous batching: {} times the tokens per second, and a mean latency lower by {} times; every token is the "
      "same.",
      gain_text(faster), gain_text(sooner));
  tell_conditions(finding, report, peaks, options);
  finding.json.update({{"workload", workload.name},
                       {"requests", requests.size()},
                       {"max_num_seqs", report.max_num_seqs},
                       {"max_num_batched_tokens", report.max_num_batched_tokens},
                       {"results", results},
                       {"throughput_gain", gain_json(faster)},
                       {"latency_gain", gain_json(sooner)},
                       {"outputs_equal", true}});
  return finding;
}

Command bench_batching_command(CLI::App& bench) {
  auto options = std::make_shared<BatchingBench>();
  CLI::App* app = bench.add_subcommand("batching", "Compare static batches with continuous ones");
  add_workload_options(*app, options->workload);
  add_claim_options(*app, *options);
  return {app, [app, options]() -> Result<> {
            OCTAVO_CHECK_OK(bench_sets(
                *app, {"--batching", "--prefix-caching", "--no-prefix-caching", "--no-kv-cache", "--trace"}));
            return run_claim(*options, [&](const ProbeReport& peaks) { return measure_batching(*options, peaks); });
          }};
}

}  // namespace octavo
