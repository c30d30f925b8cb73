// octavo bench frontier: throughput against latency, over the step budget and how many clients there are.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/bench_claims.h"
#include "cli/commands.h"

namespace octavo {
namespace {

/// One budget at one concurrency; latencies of all repeats together.
struct Point {
  std::uint32_t budget = 0, concurrency = 0;
  Repeated rate;
  double machine = 0;
  double ttft_p50 = 0, ttft_p99 = 0, tpot_p50 = 0, tpot_p99 = 0;
  bool best = false;  // no other point is better in one way and as good in all
};

bool beats(const Point& a, const Point& b) {
  const bool as_good = a.rate.median >= b.rate.median && a.ttft_p99 <= b.ttft_p99 && a.tpot_p99 <= b.tpot_p99;
  return as_good && (a.rate.median > b.rate.median || a.ttft_p99 < b.ttft_p99 || a.tpot_p99 < b.tpot_p99);
}

Point point_of(std::uint32_t budget, std::uint32_t concurrency, const std::vector<SideRun>& runs,
               const MachineShare& machine) {
  std::vector<double> ttft, tpot;
  for (const SideRun& run : runs) {
    ttft.insert(ttft.end(), run.ttft_ms.begin(), run.ttft_ms.end());
    tpot.insert(tpot.end(), run.tpot_ms.begin(), run.tpot_ms.end());
  }
  Point point;
  point.budget = budget;
  point.concurrency = concurrency;
  point.rate = fastest(runs, [](const SideRun& r) { return r.tokens_per_s(); });
  point.machine = machine.best(runs);
  point.ttft_p50 = quantile(ttft, 0.5), point.ttft_p99 = quantile(ttft, 0.99);
  point.tpot_p50 = quantile(tpot, 0.5), point.tpot_p99 = quantile(tpot, 0.99);
  return point;
}

LineChart chart_of(const std::vector<Point>& points, const char* title, const char* label, double Point::*latency) {
  LineChart chart{title, {"output tok/s"}, {label}};
  for (const Point& point : points) {
    const std::string name = fmt::format("{} tokens a step", point.budget);
    if (chart.series.empty() || chart.series.back().name != name) chart.series.push_back({name});
    chart.series.back().points.push_back(
        {point.rate.median, point.*latency, fmt::format("{}, {} at a time", name, point.concurrency), point.best});
  }
  return chart;
}

}  // namespace

Result<BenchFinding> measure_frontier(const FrontierBench& options, const ProbeReport& peaks) {
  OCTAVO_TRY(const Workload workload, make_workload(options.workload));
  const std::uint32_t most = *std::max_element(options.concurrency.begin(), options.concurrency.end());
  for (const std::uint32_t budget : options.budgets) {
    if (budget >= most) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--budgets {}: a step has a token for each of the {} of --concurrency: give at least {}",
                             budget, most, most),
                 "--budgets"};
  }
  EngineOptions engine = options.engine;
  EngineConfig& config = engine.config;
  config.max_num_seqs = most;
  config.prefix_caching = false;  // every point computes every prompt
  if (!config.kv_bytes) {
    OCTAVO_TRY(config.kv_bytes, pool_bytes(engine, pool_tokens(workload, 2 * config.block_tokens)));
  }
  std::vector<SideConfig> configs;
  for (const std::uint32_t budget : options.budgets) {
    configs.push_back(
        {fmt::format("budget {}", budget), [budget](EngineConfig& c) { c.max_num_batched_tokens = budget; }});
  }
  OCTAVO_TRY(const std::vector<Side> sides, load_sides(engine, configs));
  const EngineReport& report = sides.front().engine->report();
  OCTAVO_TRY(const MachineShare machine, MachineShare::make(report, peaks, config.numerics));
  const std::vector<Request> requests = bench_requests(report.model, workload);
  std::vector<Point> points;
  SideRun first;
  for (const std::uint32_t concurrency : options.concurrency) {
    OCTAVO_TRY(const auto runs,
               run_in_turn(sides, options.repeats, fmt::format("{} at a time", concurrency).c_str(),
                           [&](const Side& side) { return run_side(*side.engine, requests, concurrency); }));
    if (points.empty()) first = runs.front().front();
    OCTAVO_CHECK_OK(same_output(runs.front().front(), fmt::format("{} at a time", concurrency), first,
                                fmt::format("{} at a time", options.concurrency.front())));
    for (std::size_t i = 0; i < sides.size(); ++i) {
      points.push_back(point_of(options.budgets[i], concurrency, runs[i], machine));
    }
  }
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.budget < b.budget; });
  for (Point& point : points) {
    point.best = std::none_of(points.begin(), points.end(), [&](const Point& other) { return beats(other, point); });
  }

  BenchFinding finding;
  finding.name = "frontier";
  finding.title = "Throughput against latency: the step's budget, and how many ask at a time";
  finding.about =
      "The same requests by clients that send the next when one is answered. More at a time, and larger steps, give "
      "more "
      "tokens per second and a longer wait for each. Points that no other beats in throughput, p99 of TTFT and p99 of "
      "TPOT at once are marked. The tokens are the same at every point.";
  finding.conditions = {{"requests", workload.name}};
  HtmlTable table;
  table.head = {"tokens a step", "at a time",   "tok/s",       "best",        "of machine",
                "TTFT p50 ms",   "TTFT p99 ms", "TPOT p50 ms", "TPOT p99 ms", "not beaten"};
  Json results = Json::array();
  for (const Point& p : points) {
    table.rows.push_back({std::to_string(p.budget), std::to_string(p.concurrency), fmt::format("{:.1f}", p.rate.median),
                          fmt::format("{:.1f}", p.rate.best), percent_text(p.machine),
                          fmt::format("{:.1f}", p.ttft_p50), fmt::format("{:.1f}", p.ttft_p99),
                          fmt::format("{:.1f}", p.tpot_p50), fmt::format("{:.1f}", p.tpot_p99), p.best ? "*" : ""});
    results.push_back({{"max_num_batched_tokens", p.budget},
                       {"concurrency", p.concurrency},
                       {"tokens_per_s", p.rate.median},
                       {"tokens_per_s_best", p.rate.best},
                       {"machine_share", p.machine},
                       {"ttft_ms_p50", p.ttft_p50},
                       {"ttft_ms_p99", p.ttft_p99},
                       {"tpot_ms_p50", p.tpot_p50},
                       {"tpot_ms_p99", p.tpot_p99},
                       {"pareto", p.best}});
  }
  const auto [slowest, quickest] = std::minmax_element(
      points.begin(), points.end(), [](const Point& a, const Point& b) { return a.rate.median < b.rate.median; });
  finding.gain = fmt::format(
      "From {:.1f} tok/s ({} a step, {} at a time; TPOT p99 {:.1f} ms) to {:.1f} ({} a step, {} at a time; {:.1f} ms); "
      "every token is the same.",
      slowest->rate.median, slowest->budget, slowest->concurrency, slowest->tpot_p99, quickest->rate.median,
      quickest->budget, quickest->concurrency, quickest->tpot_p99);
  finding.tables.push_back(std::move(table));
  finding.curves = {chart_of(points, "Time per output token", "TPOT p99, ms", &Point::tpot_p99),
                    chart_of(points, "Time to the first token", "TTFT p99, ms", &Point::ttft_p99)};
  tell_conditions(finding, report, peaks, options);
  finding.json.update(
      {{"workload", workload.name}, {"requests", requests.size()}, {"results", results}, {"outputs_equal", true}});
  return finding;
}

Command bench_frontier_command(CLI::App& bench) {
  auto options = std::make_shared<FrontierBench>();
  CLI::App* app = bench.add_subcommand("frontier", "Show throughput against latency over step budget and concurrency");
  add_workload_options(*app, options->workload);
  add_list(*app, "--budgets", options->budgets, 1, 65536, "tokens per step");
  add_list(*app, "--concurrency", options->concurrency, 1, 4096, "requests at a time");
  add_claim_options(*app, *options);
  return {app, [app, options]() -> Result<> {
            OCTAVO_CHECK_OK(bench_sets(*app, {"--max-num-batched-tokens", "--max-num-seqs", "--prefix-caching",
                                              "--no-prefix-caching", "--no-kv-cache", "--trace"}));
            return run_claim(*options, [&](const ProbeReport& peaks) { return measure_frontier(*options, peaks); });
          }};
}

}  // namespace octavo
