// What a bench of a claim found, once for the terminal, for programs and for the report.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench_runs.h"
#include "cli/common.h"
#include "cli/html_report.h"
#include "cli/jsonl.h"
#include "octavo/probe.h"

namespace octavo {

struct BenchFinding {
  std::string name, title;  // "kv-cache", "Keys and values: kept or computed again"
  std::string about;        // what was compared, for someone who sees it for the first time
  std::string gain;         // the result in a sentence
  std::vector<std::pair<std::string, std::string>> conditions;
  std::vector<HtmlTable> tables;
  std::vector<LineChart> curves;
  std::vector<BarChart> bars;
  Json json = Json::object();
};

/// What every bench of a claim takes.
struct ClaimOptions {
  EngineOptions engine;
  std::uint32_t repeats = 3;
  bool json = false;
};

/// --repeats, --json and those of an engine.
void add_claim_options(CLI::App& app, ClaimOptions& options);

/// Lists of whole numbers with commas between them, and one.
void add_list(CLI::App& app, const char* flag, std::vector<std::uint32_t>& list, std::uint32_t least,
              std::uint32_t most, const char* about);
void add_number(CLI::App& app, const char* flag, std::uint32_t& value, std::uint32_t least, std::uint32_t most,
                const char* about);

/// --workload, --requests and --seed.
struct WorkloadOptions {
  std::string source;
  std::uint32_t requests = 0;
  std::uint64_t seed = 1;
};
void add_workload_options(CLI::App& app, WorkloadOptions& options);
[[nodiscard]] Result<Workload> make_workload(const WorkloadOptions& options);

/// An error if one of the flags was given: the bench sets them itself.
[[nodiscard]] Result<> bench_sets(const CLI::App& app, std::initializer_list<const char*> flags);

/// Of the engine and the machine: model, threads, ISA, KV type; as text, and as members of the JSON.
void tell_conditions(BenchFinding& finding, const EngineReport& report, const ProbeReport& peaks,
                     const ClaimOptions& options);
/// The figures that all sides have: tok/s, latencies, tokens computed, share of the machine.
[[nodiscard]] Json side_json(const std::string& name, const std::vector<SideRun>& runs, const MachineShare& machine);
[[nodiscard]] Json gain_json(const Gain& gain);

[[nodiscard]] Result<ProbeReport> probe_peaks(std::uint32_t threads);
[[nodiscard]] std::string percent_text(double share);

using Measure = std::function<Result<BenchFinding>(const ProbeReport& peaks)>;

/// Probes the machine, measures, and prints.
[[nodiscard]] Result<> run_claim(const ClaimOptions& options, const Measure& measure);
void print(const BenchFinding& finding);
/// As a table or as JSON.
void tell(const BenchFinding& finding, bool json);
void add_section(HtmlReport& page, const BenchFinding& finding);

}  // namespace octavo
