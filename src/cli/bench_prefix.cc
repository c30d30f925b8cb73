// octavo bench prefix: prompts that begin alike, with the prefix computed each time or found in the cache.
#include <fmt/format.h>

#include <memory>

#include "cli/bench_claims.h"
#include "cli/commands.h"

namespace octavo {
namespace {

double ttft_of(const SideRun& run) { return mean(run.ttft_ms); }
/// Requests, prompts and all, per second.
double requests_rate(const SideRun& run) { return static_cast<double>(run.hashes.size()) / run.seconds; }

std::string ms_text(double ms) { return fmt::format("{:.1f}", ms); }

}  // namespace

Result<BenchFinding> measure_prefix(const PrefixBench& options, const ProbeReport& peaks) {
  EngineOptions engine = options.engine;
  EngineConfig& config = engine.config;
  const std::uint64_t each = std::uint64_t{options.prefix} + options.tail + options.tokens;
  if (!config.kv_bytes) {
    OCTAVO_TRY(config.kv_bytes, pool_bytes(engine, (options.requests + 1ULL) * (each + 2ULL * config.block_tokens)));
  }
  OCTAVO_TRY(const std::vector<Side> sides,
             load_sides(engine, {{"cold", [](EngineConfig& c) { c.prefix_caching = false; }},
                                 {"hit", [](EngineConfig& c) { c.prefix_caching = true; }}}));
  const EngineReport& report = sides.front().engine->report();
  OCTAVO_TRY(const MachineShare machine, MachineShare::make(report, peaks, config.numerics));
  const Request prefix = bench_request(report.model, 5, options.prefix, 1);
  std::vector<Request> requests;
  for (std::uint32_t i = 0; i < options.requests; ++i) {
    Request request = bench_request(report.model, 100 + i, options.tail, options.tokens);
    request.prompt.insert(request.prompt.begin(), prefix.prompt.begin(), prefix.prompt.end());
    requests.push_back(std::move(request));
  }
  // The cache holds the prefix and nothing else when a run begins: ends and answers of the run before are forgotten.
  const auto run_at = [&](std::uint32_t concurrency) {
    return [&, concurrency](const Side& side) -> Result<SideRun> {
      OCTAVO_CHECK_OK(side.engine->reset_prefix_cache());
      if (side.engine->report().prefix_caching) {
        OCTAVO_TRY(const SideRun ignored, run_side(*side.engine, {prefix}));
        static_cast<void>(ignored);
      }
      return run_side(*side.engine, requests, concurrency);
    };
  };
  OCTAVO_TRY(const auto in_turn, run_in_turn(sides, options.repeats, "one at a time", run_at(1)));
  OCTAVO_TRY(const auto together, run_in_turn(sides, options.repeats, "all at once", run_at(options.requests)));

  BenchFinding finding;
  finding.name = "prefix";
  finding.title = "Prompts that begin alike: computed each time, or found in the cache";
  finding.about =
      "Every prompt is a common prefix and an end of its own. Cold, each is computed whole; with the prefix cache only "
      "the end is. Measured one request at a time (time to the first token) and with all at once (throughput). The "
      "tokens are the same.";
  finding.conditions = {{"requests", fmt::format("{} of {} + {} prompt tokens, {} generated", options.requests,
                                                 options.prefix, options.tail, options.tokens)}};
  HtmlTable table;
  table.head = {
      "prefix",   "TTFT ms, one at a time", "best", "requests/s, all at once", "best", "tok/s", "of machine", "found",
      "computed", "of prompt tokens"};
  Json results = Json::array();
  BarChart bars{"Time to the first token, one request at a time", "ms, median", {}, {{"TTFT", {}}}};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const Repeated ttft = shortest(in_turn[i], ttft_of), rate = fastest(together[i], requests_rate);
    const SideRun& first = together[i].front();
    const double tokens = fastest(together[i], [](const SideRun& r) { return r.tokens_per_s(); }).median;
    table.rows.push_back({sides[i].name, ms_text(ttft.median), ms_text(ttft.best), fmt::format("{:.2f}", rate.median),
                          fmt::format("{:.2f}", rate.best), fmt::format("{:.1f}", tokens),
                          percent_text(machine.best(together[i])), std::to_string(first.cached_tokens),
                          std::to_string(first.computed_tokens), std::to_string(first.prompt_tokens)});
    bars.labels.push_back(sides[i].name);
    bars.series.front().second.push_back(ttft.median);
    results.push_back({{"side", sides[i].name},
                       {"one_at_a_time", side_json(sides[i].name, in_turn[i], machine)},
                       {"all_at_once", side_json(sides[i].name, together[i], machine)}});
  }
  const Gain sooner = gain(in_turn[0], in_turn[1], ttft_of), faster = gain(together[1], together[0], requests_rate);
  finding.tables.push_back(std::move(table));
  finding.bars.push_back(std::move(bars));
  finding.gain = fmt::format(
      "A cached prefix of {} tokens: the first token comes {} times as soon, {} times as many requests per second; "
      "every "
      "token is the same.",
      options.prefix, gain_text(sooner), gain_text(faster));
  tell_conditions(finding, report, peaks, options);
  finding.json.update({{"prefix_tokens", options.prefix},
                       {"tail_tokens", options.tail},
                       {"output_tokens", options.tokens},
                       {"requests", options.requests},
                       {"results", results},
                       {"ttft_gain", gain_json(sooner)},
                       {"throughput_gain", gain_json(faster)},
                       {"outputs_equal", true}});
  return finding;
}

Command bench_prefix_command(CLI::App& bench) {
  auto options = std::make_shared<PrefixBench>();
  CLI::App* app = bench.add_subcommand("prefix", "Compare prompts with a cached prefix and without");
  add_number(*app, "--prefix", options->prefix, 1, 1U << 20U, "tokens that all prompts begin with");
  add_number(*app, "--tail", options->tail, 1, 1U << 20U, "tokens of each prompt's own end");
  add_number(*app, "--tokens", options->tokens, 1, 1U << 16U, "generated by each request");
  add_number(*app, "--requests", options->requests, 1, 4096, "how many");
  add_claim_options(*app, *options);
  return {app, [app, options]() -> Result<> {
            OCTAVO_CHECK_OK(bench_sets(*app, {"--prefix-caching", "--no-prefix-caching", "--kv-memory", "--no-kv-cache",
                                              "--batching", "--trace"}));
            return run_claim(*options, [&](const ProbeReport& peaks) { return measure_prefix(*options, peaks); });
          }};
}

}  // namespace octavo
