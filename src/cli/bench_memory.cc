// octavo bench memory: one KV pool given out in three ways, to the same requests.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/bench_claims.h"
#include "cli/commands.h"
#include "cli/format.h"

namespace octavo {
namespace {

double rate_of(const SideRun& run) { return run.tokens_per_s(); }
double running_of(const SideRun& run) { return run.mean_running; }

double waste_of(const SideRun& run) {
  return run.mean_reserved_bytes > 0 ? 1 - run.mean_used_bytes / run.mean_reserved_bytes : 0;
}

std::string bytes_of(double bytes) { return human_bytes(static_cast<std::uint64_t>(bytes)); }

}  // namespace

Result<BenchFinding> measure_memory(const MemoryBench& options, const ProbeReport& peaks) {
  OCTAVO_TRY(const Workload workload, make_workload(options.workload));
  EngineOptions engine = options.engine;
  EngineConfig& config = engine.config;
  if (!config.max_model_len) config.max_model_len = longest(workload);
  if (options.pool_tokens < *config.max_model_len) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--pool-tokens {}: the longest request is {} tokens, and static memory holds a place for "
                             "it: give at least that many",
                             options.pool_tokens, *config.max_model_len),
                 "--pool-tokens"};
  }
  OCTAVO_TRY(config.kv_bytes, pool_bytes(engine, options.pool_tokens));
  config.prefix_caching = false;  // only paged memory could share
  const auto with = [](KvMemory memory) { return [memory](EngineConfig& c) { c.kv_memory = memory; }; };
  OCTAVO_TRY(const std::vector<Side> sides, load_sides(engine, {{"static", with(KvMemory::kStatic)},
                                                                {"dynamic", with(KvMemory::kDynamic)},
                                                                {"paged", with(KvMemory::kPaged)}}));
  const EngineReport& report = sides.front().engine->report();
  OCTAVO_TRY(const MachineShare machine, MachineShare::make(report, peaks, config.numerics));
  const std::vector<Request> requests = bench_requests(report.model, workload);
  OCTAVO_TRY(const auto runs, run_in_turn(sides, options.repeats, "memory",
                                          [&](const Side& side) { return run_side(*side.engine, requests); }));

  BenchFinding finding;
  finding.name = "memory";
  finding.title = "KV memory: reserved for the longest, grown in one piece, or paged";
  finding.about =
      "The same requests, all waiting from the start, and the same pool. Static memory reserves the longest possible "
      "request for each sequence; dynamic memory grows in consecutive chunks and moves when it must; paged memory "
      "takes "
      "any free block. Waste is what is reserved and holds no token. The tokens are the same.";
  finding.conditions = {
      {"requests", workload.name},
      {"pool", fmt::format("{}, {} tokens in blocks of {}; longest request {} tokens, up to {} sequences",
                           human_bytes(*config.kv_bytes), options.pool_tokens, report.block_tokens,
                           *config.max_model_len, report.max_num_seqs)}};
  HtmlTable table;
  table.head = {"memory", "at once, mean", "peak",       "reserved",       "used",        "waste",
                "tok/s",  "best",          "of machine", "mean latency s", "preemptions", "moves"};
  Json results = Json::array();
  BarChart running{"Sequences that ran at once", "sequences", {}, {{"mean", {}}, {"peak", {}}}};
  BarChart rates{"Output tokens per second", "tok/s, median", {}, {{"tok/s", {}}}};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const auto median_of = [&](const std::function<double(const SideRun&)>& figure) {
      return shortest(runs[i], figure).median;
    };
    const Repeated rate = fastest(runs[i], rate_of);
    const double at_once = median_of(running_of), waste = median_of(waste_of);
    const double reserved = median_of([](const SideRun& r) { return r.mean_reserved_bytes; });
    const double used = median_of([](const SideRun& r) { return r.mean_used_bytes; });
    const double latency = median_of([](const SideRun& r) { return mean(r.latency_ms); });
    const double peak = fastest(runs[i], [](const SideRun& r) { return 1.0 * r.peak_running; }).best;
    const SideRun& first = runs[i].front();
    table.rows.push_back({sides[i].name, fmt::format("{:.1f}", at_once), fmt::format("{:.0f}", peak),
                          bytes_of(reserved), bytes_of(used), percent_text(waste), fmt::format("{:.1f}", rate.median),
                          fmt::format("{:.1f}", rate.best), percent_text(machine.best(runs[i])),
                          fmt::format("{:.2f}", latency / 1000), std::to_string(first.preemptions),
                          std::to_string(first.moves)});
    running.labels.push_back(sides[i].name);
    running.series[0].second.push_back(at_once);
    running.series[1].second.push_back(peak);
    rates.labels.push_back(sides[i].name);
    rates.series[0].second.push_back(rate.median);
    results.push_back(side_json(sides[i].name, runs[i], machine));
    results.back().update({{"mean_running", at_once},
                           {"peak_running", peak},
                           {"reserved_bytes", reserved},
                           {"used_bytes", used},
                           {"waste", waste},
                           {"moves", first.moves}});
  }
  const Gain at_once = gain(runs[2], runs[0], running_of), faster = gain(runs[2], runs[0], rate_of);
  finding.tables.push_back(std::move(table));
  finding.bars = {std::move(running), std::move(rates)};
  finding.gain = fmt::format(
      "Paged against static memory: {} times as many sequences at once, {} times the tokens per second; every token "
      "is the same.",
      gain_text(at_once), gain_text(faster));
  tell_conditions(finding, report, peaks, options);
  finding.json.update({{"workload", workload.name},
                       {"requests", requests.size()},
                       {"pool_bytes", *config.kv_bytes},
                       {"pool_tokens", options.pool_tokens},
                       {"max_model_len", *config.max_model_len},
                       {"results", results},
                       {"running_gain", gain_json(at_once)},
                       {"throughput_gain", gain_json(faster)},
                       {"outputs_equal", true}});
  return finding;
}

Command bench_memory_command(CLI::App& bench) {
  auto options = std::make_shared<MemoryBench>();
  CLI::App* app = bench.add_subcommand("memory", "Compare static, dynamic and paged KV memory in one pool");
  add_workload_options(*app, options->workload);
  add_number(*app, "--pool-tokens", options->pool_tokens, 16, 1U << 30U, "that the KV pool holds");
  add_claim_options(*app, *options);
  return {app, [app, options]() -> Result<> {
            OCTAVO_CHECK_OK(bench_sets(*app, {"--kv-memory", "--kv-bytes", "--kv-fraction", "--prefix-caching",
                                              "--no-prefix-caching", "--no-kv-cache", "--batching", "--trace"}));
            return run_claim(*options, [&](const ProbeReport& peaks) { return measure_memory(*options, peaks); });
          }};
}

}  // namespace octavo
