// octavo bench all: every bench of a model in a short form, and one report of them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>

#include "cli/bench_claims.h"
#include "cli/commands.h"
#include "cli/model_bench.h"
#include "cli/model_names.h"

namespace octavo {
namespace {

struct AllOptions : ClaimOptions {
  AllOptions() { repeats = 2; }
  std::string html;
};

/// The words that were given, as they could be given again.
std::string command_of(const CLI::App& app) {
  std::string out = "octavo bench " + app.get_name();
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    if (option->get_items_expected_max() == 0) {
      out += " " + option->get_name();
    } else {
      out += fmt::format(" {} {}", option->get_name(), fmt::join(option->results(), ","));
    }
  }
  return out;
}

Result<BenchFinding> measure_speed(const AllOptions& options, const ProbeReport& peaks) {
  using Kind = ModelTest::Kind;
  OCTAVO_TRY(const std::unique_ptr<Engine> engine, load_engine(options.engine));
  const std::vector<ModelTest> tests = {{Kind::kPrefill, 256, 0, 1},
                                        {Kind::kDecode, 32, 0, 1},
                                        {Kind::kDecode, 32, 512, 1},
                                        {Kind::kDecode, 32, 0, 4},
                                        {Kind::kDecode, 32, 0, 16}};
  OCTAVO_TRY(const std::vector<ModelRow> rows,
             bench_model(*engine, peaks, options.engine.config.numerics, tests, options.repeats));
  BenchFinding finding;
  finding.name = "speed";
  finding.title = "Speed, beside what the machine allows";
  finding.about =
      "Prompt tokens per second until the first token (prefill), and generated tokens per second after it (decode), by "
      "tokens that stand before and by streams at once. At most: what the probed peaks allow, arithmetic or reading, "
      "whichever is lower.";
  HtmlTable table;
  table.head = {"test", "tokens", "depth", "streams", "tok/s", "best", "at most", "of peak", "of read"};
  Json results = Json::array();
  BarChart bars{"Tokens per second", "tok/s", {}, {{"median", {}}, {"the machine's limit", {}}}};
  for (const ModelRow& row : rows) {
    table.rows.push_back({row.test.name(), std::to_string(row.test.tokens), std::to_string(row.test.depth),
                          std::to_string(row.test.streams), fmt::format("{:.1f}", row.median),
                          fmt::format("{:.1f}", row.best), fmt::format("{:.1f}", row.limit),
                          percent_text(row.compute_share), percent_text(row.read_share)});
    bars.labels.push_back(fmt::format("{}, depth {}, {} stream{}", row.test.name(), row.test.depth, row.test.streams,
                                      row.test.streams == 1 ? "" : "s"));
    bars.series[0].second.push_back(row.median);
    bars.series[1].second.push_back(row.limit);
    results.push_back({{"test", row.test.name()},
                       {"tokens", row.test.tokens},
                       {"depth", row.test.depth},
                       {"streams", row.test.streams},
                       {"tokens_per_s", row.median},
                       {"tokens_per_s_best", row.best},
                       {"tokens_per_s_limit", row.limit},
                       {"compute_share", row.compute_share},
                       {"read_share", row.read_share}});
  }
  finding.tables.push_back(std::move(table));
  finding.bars.push_back(std::move(bars));
  finding.gain = fmt::format("Prefill {:.1f} tok/s; decode {:.1f} tok/s of one stream.", rows.front().median,
                             rows.size() > 1 ? rows[1].median : 0.0);
  tell_conditions(finding, engine->report(), peaks, options);
  finding.json["results"] = std::move(results);
  return finding;
}

template <class Bench>
Bench with(const AllOptions& options) {
  Bench bench;
  bench.repeats = options.repeats;
  const std::uint32_t seats = bench.engine.config.max_num_seqs;
  bench.engine = options.engine;
  bench.engine.config.max_num_seqs = seats;
  return bench;
}

using Part = std::function<Result<BenchFinding>()>;

std::vector<Part> parts_of(const AllOptions& options, const ProbeReport& peaks, std::uint32_t context_length) {
  auto cache = with<KvCacheBench>(options);
  cache.lengths = {16, 32, 64};
  auto batching = with<BatchingBench>(options);
  auto memory = with<MemoryBench>(options);
  auto prefix = with<PrefixBench>(options);
  prefix.requests = 4;
  prefix.prefix = std::min(prefix.prefix, context_length / 2);
  auto preemption = with<PreemptionBench>(options);
  auto frontier = with<FrontierBench>(options);
  frontier.workload.requests = 16;
  frontier.budgets = {16, 128};
  frontier.repeats = 1;
  AttentionBench attention;
  attention.model = options.engine.model;
  attention.kv_type = kv_type_name(options.engine.config.kv_type);
  attention.threads = options.engine.config.threads;
  attention.repeats = options.repeats;
  return {[=, &options, &peaks] { return measure_speed(options, peaks); },
          [=, &peaks] { return measure_kv_cache(cache, peaks); },
          [=, &peaks] { return measure_batching(batching, peaks); },
          [=, &peaks] { return measure_memory(memory, peaks); },
          [=, &peaks] { return measure_prefix(prefix, peaks); },
          [=, &peaks] { return measure_preemption(preemption, peaks); },
          [=] { return measure_attention(attention); },
          [=, &peaks] { return measure_frontier(frontier, peaks); }};
}

Result<> bench_all(const CLI::App& app, const AllOptions& options) {
  HtmlReport page("What Octavo gains on this machine");
  if (!options.html.empty()) OCTAVO_CHECK_OK(page.write(options.html));  // now, rather than after minutes
  OCTAVO_TRY(const std::string path, resolve_model(options.engine.model));
  OCTAVO_TRY(const ModelInfo model, inspect_model(path));
  OCTAVO_TRY(const ProbeReport peaks, probe_peaks(options.engine.config.threads));
  std::vector<BenchFinding> findings;
  for (const Part& part : parts_of(options, peaks, model.context_length)) {
    OCTAVO_TRY(BenchFinding finding, part());
    if (!options.json) {
      print(finding);
      fmt::print("\n");
      std::fflush(stdout);
    }
    findings.push_back(std::move(finding));
  }
  if (options.json) {
    Json list = Json::array();
    for (BenchFinding& finding : findings) list.push_back(std::move(finding.json));
    std::cout << dump({{"command", command_of(app)}, {"benches", list}}) << std::endl;
  }
  if (options.html.empty()) return Ok{};
  for (const auto& [name, value] : findings.front().conditions) page.condition(name, value);
  page.condition("command", command_of(app));
  page.section("In short");
  HtmlTable summary;
  summary.head = {"bench", "what it found"};
  for (const BenchFinding& finding : findings) summary.rows.push_back({finding.name, finding.gain});
  page.table(summary);
  page.text(
      "Both sides of each comparison ran in turn in one process on the same machine; ratios are medians over the "
      "repeats, with the least and the most. Outputs of both sides were compared, token for token.");
  for (const BenchFinding& finding : findings) add_section(page, finding);
  return page.write(options.html);
}

}  // namespace

Command bench_all_command(CLI::App& bench) {
  auto options = std::make_shared<AllOptions>();
  CLI::App* app = bench.add_subcommand("all", "Run every bench of a model in a short form, and report on them");
  app->add_option("--html", options->html, "also write a report: one page that needs nothing else");
  add_claim_options(*app, *options);
  return {
      app, [app, options]() -> Result<> {
        OCTAVO_CHECK_OK(bench_sets(*app, {"--max-model-len", "--max-num-seqs", "--max-num-batched-tokens", "--batching",
                                          "--kv-bytes", "--kv-fraction", "--kv-memory", "--prefix-caching",
                                          "--no-prefix-caching", "--preemption", "--no-kv-cache", "--trace"}));
        return bench_all(*app, *options);
      }};
}

}  // namespace octavo
