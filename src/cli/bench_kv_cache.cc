// octavo bench kv-cache: decoding with the cache against computing all before a token again for each.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/bench_claims.h"
#include "cli/commands.h"

namespace octavo {
namespace {

/// Of a request's tokens after the first one.
double decode_rate(const SideRun& run) { return 1000 / std::max(run.tpot_ms.front(), 1e-6); }

double seconds_of(const SideRun& run) { return run.seconds; }

std::uint64_t tokens_of(const std::vector<SideRun>& runs) { return runs.front().computed_tokens; }

}  // namespace

Result<BenchFinding> measure_kv_cache(const KvCacheBench& options, const ProbeReport& peaks) {
  EngineOptions engine = options.engine;
  EngineConfig& config = engine.config;
  const std::uint32_t most = *std::max_element(options.lengths.begin(), options.lengths.end());
  if (!config.kv_bytes) {
    OCTAVO_TRY(config.kv_bytes, pool_bytes(engine, std::uint64_t{options.prompt} + most + 4ULL * config.block_tokens));
  }
  config.prefix_caching = false;  // each run computes its prompt
  OCTAVO_TRY(const std::vector<Side> sides,
             load_sides(engine, {{"cache", {}}, {"no cache", [](EngineConfig& c) { c.kv_cache = false; }}}));
  const EngineReport& report = sides.front().engine->report();
  OCTAVO_TRY(const MachineShare machine, MachineShare::make(report, peaks, config.numerics));

  BenchFinding finding;
  finding.name = "kv-cache";
  finding.title = "Keys and values: kept, or computed again for each token";
  finding.about =
      "One stream generates tokens after a short prompt. With the cache a step computes one token and reads the keys "
      "and values of those before it; without, it computes all of them again. The tokens are the same.";
  finding.conditions = {{"prompt", fmt::format("{} tokens, one stream, greedy", options.prompt)}};
  HtmlTable table;
  table.head = {"generated",     "s, cache",      "best",       "s, no cache", "best",     "gain",
                "tok/s decoded", "without cache", "of machine", "without",     "computed", "without"};
  PlotSeries with{"with the cache"}, without{"without"};
  Json results = Json::array();
  Gain last;
  for (const std::uint32_t length : options.lengths) {
    const Request request = bench_request(report.model, 1000 + length, options.prompt, length);
    OCTAVO_TRY(const auto runs, run_in_turn(sides, options.repeats, fmt::format("{} tokens", length).c_str(),
                                            [&](const Side& side) { return run_side(*side.engine, {request}); }));
    const Repeated cached = shortest(runs[0], seconds_of), naive = shortest(runs[1], seconds_of);
    const Repeated cached_rate = fastest(runs[0], decode_rate), naive_rate = fastest(runs[1], decode_rate);
    last = gain(runs[1], runs[0], seconds_of);
    table.rows.push_back({std::to_string(length), fmt::format("{:.3f}", cached.median),
                          fmt::format("{:.3f}", cached.best), fmt::format("{:.3f}", naive.median),
                          fmt::format("{:.3f}", naive.best), gain_text(last), fmt::format("{:.1f}", cached_rate.median),
                          fmt::format("{:.1f}", naive_rate.median), percent_text(machine.best(runs[0])),
                          percent_text(machine.best(runs[1])), std::to_string(tokens_of(runs[0])),
                          std::to_string(tokens_of(runs[1]))});
    with.points.push_back({1.0 * length, cached.median});
    without.points.push_back({1.0 * length, naive.median});
    results.push_back({{"tokens", length},
                       {"gain", gain_json(last)},
                       {"outputs_equal", true},
                       {"sides", {side_json("cache", runs[0], machine), side_json("no cache", runs[1], machine)}}});
  }
  finding.tables.push_back(std::move(table));
  finding.curves.push_back({"Time to generate", {"generated tokens", true}, {"seconds", true}, {with, without}});
  finding.gain = fmt::format("The cache makes {} tokens {:.1f} times as fast; every token is the same.",
                             options.lengths.back(), last.median);
  finding.json["prompt_tokens"] = options.prompt;
  tell_conditions(finding, report, peaks, options);
  finding.json["results"] = std::move(results);
  return finding;
}

Command bench_kv_cache_command(CLI::App& bench) {
  auto options = std::make_shared<KvCacheBench>();
  CLI::App* app = bench.add_subcommand("kv-cache", "Compare decoding with the KV cache and without");
  add_number(*app, "--prompt", options->prompt, 1, 1U << 20U, "tokens of the prompt");
  add_list(*app, "--lengths", options->lengths, 2, 1U << 16U, "generated tokens");
  add_claim_options(*app, *options);
  return {app, [app, options]() -> Result<> {
            OCTAVO_CHECK_OK(bench_sets(*app, {"--no-kv-cache", "--prefix-caching", "--no-prefix-caching", "--kv-memory",
                                              "--batching", "--trace"}));
            return run_claim(*options, [&](const ProbeReport& peaks) { return measure_kv_cache(*options, peaks); });
          }};
}

}  // namespace octavo
