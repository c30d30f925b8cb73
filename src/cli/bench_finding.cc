#include "cli/bench_finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <string_view>

#include "cli/validators.h"

namespace octavo {
namespace {

/// Columns, not bytes: the tables hold little beyond ASCII.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void print(const HtmlTable& table) {
  std::vector<std::size_t> widths;
  for (const std::string& cell : table.head) widths.push_back(columns(cell));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  const auto line = [&](const std::vector<std::string>& row) {
    std::string out;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - columns(row[i]), ' ');
      out += i == 0 ? row[i] + space : "   " + space + row[i];
    }
    fmt::print("{}\n", out);
  };
  fmt::print("\n");
  if (!table.caption.empty()) fmt::print("{}\n", table.caption);
  line(table.head);
  for (const auto& row : table.rows) line(row);
}

}  // namespace

void add_claim_options(CLI::App& app, ClaimOptions& options) {
  add_number(app, "--repeats", options.repeats, 1, 1000, "timed runs of each side");
  app.add_flag("--json", options.json, "print JSON");
  add_engine_options(app, options.engine, ModelWord::kPositional);
}

void add_list(CLI::App& app, const char* flag, std::vector<std::uint32_t>& list, std::uint32_t least,
              std::uint32_t most, const char* about) {
  app.add_option(flag, list, about)
      ->delimiter(',')
      ->check(whole_number(least, most))
      ->allow_extra_args(false)
      ->capture_default_str();
}

void add_number(CLI::App& app, const char* flag, std::uint32_t& value, std::uint32_t least, std::uint32_t most,
                const char* about) {
  app.add_option(flag, value, about)->check(whole_number(least, most))->capture_default_str();
}

void add_workload_options(CLI::App& app, WorkloadOptions& options) {
  app.add_option("--workload", options.source, "lengths of the requests: a distribution, a profile or a trace file")
      ->capture_default_str();
  add_number(app, "--requests", options.requests, 1, 100'000, "how many");
  app.add_option("--seed", options.seed, "of the lengths")->check(whole_number())->capture_default_str();
}

Result<Workload> make_workload(const WorkloadOptions& options) {
  Arrivals arrivals;
  arrivals.requests = options.requests;
  arrivals.seed = options.seed;
  arrivals.rate = std::numeric_limits<double>::infinity();  // all wait from the start
  return make_workload(options.source, arrivals);
}

Result<> bench_sets(const CLI::App& app, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) {
    if (app.get_option(flag)->count() == 0) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: 'bench {}' sets it itself, to compare: leave it out", flag, app.get_name()), flag};
  }
  return Ok{};
}

void tell_conditions(BenchFinding& finding, const EngineReport& report, const ProbeReport& peaks,
                     const ClaimOptions& options) {
  const Numerics numerics = options.engine.config.numerics;
  finding.conditions.insert(finding.conditions.begin(),
                            {{"model", fmt::format("{}, numerics {}, KV {}", report.model.name, numerics_name(numerics),
                                                   kv_type_name(report.kv_type))},
                             {"machine", fmt::format("{}, {}, {} threads", peaks.cpu, report.isa, report.threads)}});
  finding.conditions.emplace_back("repeats", fmt::format("{}, sides in turn", options.repeats));
  finding.json.update({{"bench", finding.name},
                       {"model", report.model.name},
                       {"numerics", numerics_name(numerics)},
                       {"kv_type", kv_type_name(report.kv_type)},
                       {"isa", report.isa},
                       {"threads", report.threads},
                       {"machine",
                        {{"cpu", peaks.cpu},
                         {"int8_gops", peaks.int8.all},
                         {"bf16_gflops", peaks.bf16.all},
                         {"f32_gflops", peaks.f32.all}}},
                       {"repeats", options.repeats}});
}

Json side_json(const std::string& name, const std::vector<SideRun>& runs, const MachineShare& machine) {
  const SideRun& first = runs.front();
  const Repeated rate = fastest(runs, [](const SideRun& r) { return r.tokens_per_s(); });
  const Repeated latency = shortest(runs, [](const SideRun& r) { return mean(r.latency_ms); });
  const Repeated ttft = shortest(runs, [](const SideRun& r) { return mean(r.ttft_ms); });
  const Repeated seconds = shortest(runs, [](const SideRun& r) { return r.seconds; });
  return {{"side", name},
          {"tokens_per_s", rate.median},
          {"tokens_per_s_best", rate.best},
          {"seconds", seconds.median},
          {"seconds_best", seconds.best},
          {"mean_latency_ms", latency.median},
          {"mean_latency_ms_best", latency.best},
          {"mean_ttft_ms", ttft.median},
          {"mean_ttft_ms_best", ttft.best},
          {"machine_share", machine.best(runs)},
          {"output_tokens", first.output_tokens},
          {"prompt_tokens", first.prompt_tokens},
          {"cached_tokens", first.cached_tokens},
          {"computed_tokens", first.computed_tokens},
          {"steps", first.steps},
          {"preemptions", first.preemptions},
          {"preemptions_swap", first.preemptions_swap}};
}

Json gain_json(const Gain& gain) { return {{"median", gain.median}, {"least", gain.least}, {"most", gain.most}}; }

Result<ProbeReport> probe_peaks(std::uint32_t threads) {
  ProbeConfig config;
  config.threads = threads;
  config.working_sets = {1ULL << 20U};  // whoever needs a bandwidth asks for it at its own
  return probe(config);
}

std::string percent_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

Result<> run_claim(const ClaimOptions& options, const Measure& measure) {
  OCTAVO_TRY(const ProbeReport peaks, probe_peaks(options.engine.config.threads));
  OCTAVO_TRY(const BenchFinding finding, measure(peaks));
  tell(finding, options.json);
  return Ok{};
}

void tell(const BenchFinding& finding, bool json) {
  if (json) {
    std::cout << dump(finding.json) << std::endl;
  } else {
    print(finding);
  }
}

void print(const BenchFinding& finding) {
  fmt::print("{}\n", finding.title);
  for (const auto& [name, value] : finding.conditions) fmt::print("{:<12}{}\n", name, value);
  for (const HtmlTable& table : finding.tables) print(table);
  fmt::print("\n{}\n", finding.gain);
}

void add_section(HtmlReport& page, const BenchFinding& finding) {
  page.section(finding.title).text(finding.about).text(finding.gain);
  for (const HtmlTable& table : finding.tables) page.table(table);
  for (const LineChart& chart : finding.curves) page.plot(chart);
  for (const BarChart& chart : finding.bars) page.plot(chart);
  HtmlTable conditions;
  conditions.head = {"condition", ""};
  for (const auto& [name, value] : finding.conditions) conditions.rows.push_back({name, value});
  page.table(conditions);
}

}  // namespace octavo
