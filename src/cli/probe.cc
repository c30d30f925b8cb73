// octavo probe: what this machine can reach at most.
#include "octavo/probe.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/format.h"
#include "cli/jsonl.h"
#include "cli/machine_profile.h"
#include "octavo/profile.h"

namespace octavo {
namespace {

struct ProbeOptions {
  std::uint32_t threads = 0;
  std::vector<std::string> working_sets, models;
  bool save = false, json = false;
  std::string output;
};

Json to_json(const PeakRate& peak) {
  return {{"kind", peak.kind},
          {"gops_one", peak.one},
          {"gops_one_median", peak.one_median},
          {"gops_all", peak.all},
          {"gops_all_median", peak.all_median}};
}

Json to_json(const ProbeReport& report) {
  Json reads = Json::array();
  for (const ReadRate& rate : report.read) {
    reads.push_back({{"working_set_bytes", rate.working_set_bytes},
                     {"threads", rate.threads},
                     {"gbytes_per_s", rate.best},
                     {"gbytes_per_s_median", rate.median}});
  }
  return {{"cpu", report.cpu},
          {"threads", report.threads},
          {"int8", to_json(report.int8)},
          {"bf16", to_json(report.bf16)},
          {"f32", to_json(report.f32)},
          {"read", reads},
          {"empty_region_us", {{"min", report.empty_region.min_us}, {"median", report.empty_region.median_us}}},
          {"joined_region_us", {{"min", report.joined_region.min_us}, {"median", report.joined_region.median_us}}}};
}

void print_table(const ProbeReport& report) {
  fmt::print("{}\n\n{:<22}{:>9}{:>10}{:>10}\n", report.cpu, "", "threads", "best", "median");
  const auto print_peak = [&](const char* name, const PeakRate& peak) {
    const auto line = [&](std::uint32_t threads, double best, double median) {
      fmt::print("{:<22}{:>9}{:>10.1f}{:>10.1f}   {}\n", name, threads, best, median, peak.kind);
    };
    line(1, peak.one, peak.one_median);
    if (report.threads > 1) line(report.threads, peak.all, peak.all_median);
  };
  print_peak("int8, Gop/s", report.int8);
  print_peak("bf16, Gflop/s", report.bf16);
  print_peak("f32, Gflop/s", report.f32);
  for (const ReadRate& rate : report.read) {
    fmt::print("{:<22}{:>9}{:>10.1f}{:>10.1f}\n", fmt::format("read {}, GB/s", human_bytes(rate.working_set_bytes)),
               rate.threads, rate.best, rate.median);
  }
  for (const auto& [name, cost] :
       {std::pair{"empty region, us", report.empty_region}, std::pair{"joined region, us", report.joined_region}}) {
    fmt::print("{:<22}{:>9}{:>10.2f}{:>10.2f}\n", name, report.threads, cost.min_us, cost.median_us);
  }
}

Error of_working_set(Error error) {
  error.message = "--working-set: " + error.message;
  return error;
}

/// Its part in the profile is new, or takes the place of an older one.
Result<> add_model(const ProbeOptions& options, const std::string& model, MachineProfile& profile) {
  EngineOptions engine;
  engine.model = model;
  engine.config.threads = options.threads;
  prepare_for_profile(engine.config);
  OCTAVO_TRY(const std::unique_ptr<Engine> loaded, load_engine(engine));
  OCTAVO_TRY(ModelProfile measured, measure_model(*loaded, engine.config.numerics));
  std::erase_if(profile.models, [&](const ModelProfile& m) {
    return m.name == measured.name && m.weights_bytes == measured.weights_bytes && m.numerics == measured.numerics &&
           m.kv_type == measured.kv_type;
  });
  profile.models.push_back(std::move(measured));
  return Ok{};
}

/// Measures the machine, or the models named where its own part is there already, and keeps it all; parts of other
/// models stay.
Result<> save(const ProbeOptions& options) {
  const std::string path = options.output.empty() ? profile_path(options.threads) : options.output;
  if (path.empty()) {
    return Error{
        ErrorCode::kInvalidArgument,
        "--save: there is no cache folder (OCTAVO_CACHE is off, or HOME is not set): name a file with --output",
        "--save"};
  }
  Result<MachineProfile> older = load_profile(path);
  if (!older && older.error().code != ErrorCode::kNotFound) return std::move(older).error();
  MachineProfile profile;
  if (older && !options.models.empty()) {
    profile = std::move(*older);
  } else {
    OCTAVO_TRY(profile, measure_machine(options.threads));
    if (older && older->isa == profile.isa && older->threads == profile.threads) {
      profile.models = std::move(older->models);
    }
  }
  for (const std::string& model : options.models) OCTAVO_CHECK_OK(add_model(options, model, profile));
  OCTAVO_CHECK_OK(save_profile(path, profile));
  if (options.json) {
    Json models = Json::array();
    for (const ModelProfile& m : profile.models) models.push_back(m.name);
    std::cout << dump({{"machine", path}, {"hash", profile_hash(profile)}, {"models", models}}) << std::endl;
    return Ok{};
  }
  fmt::print("{}, {}, {} threads: profile {} in {}\n", profile.cpu, profile.isa, profile.threads, profile_hash(profile),
             path);
  for (const ModelProfile& m : profile.models)
    fmt::print("  steps of {}, {} numerics, KV {}\n", m.name, m.numerics, m.kv_type);
  return Ok{};
}

Result<> run_probe(const ProbeOptions& options) {
  if (options.save) return save(options);
  for (const auto& [flag, given] :
       {std::pair{"--model", !options.models.empty()}, {"--output", !options.output.empty()}}) {
    if (!given) continue;
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} names what a profile is to hold: add --save", flag),
                 flag};
  }
  ProbeConfig config;
  config.threads = options.threads;
  for (const std::string& text : options.working_sets) {
    const Result<std::uint64_t> bytes = parse_bytes(text);
    if (!bytes) return of_working_set(bytes.error());
    if (*bytes < 64) {
      return of_working_set({ErrorCode::kInvalidArgument, fmt::format("{} is less than 64 bytes", text), ""});
    }
    config.working_sets.push_back(*bytes);
  }
  const Result<ProbeReport> report = probe(config);
  if (!report) return of_working_set(report.error());
  if (options.json) {
    std::cout << dump(to_json(*report)) << std::endl;
  } else {
    print_table(*report);
  }
  return Ok{};
}

}  // namespace

Command probe_command(CLI::App& program) {
  auto options = std::make_shared<ProbeOptions>();
  CLI::App* app =
      program.add_subcommand("probe", "Measure this machine's peaks: arithmetic, reading memory, parallel regions");
  app->add_option("--threads", options->threads, "default: the cores this process may use")
      ->check(CLI::Range(1U, 1024U));
  app->add_option("--working-set", options->working_sets,
                  "sizes to read again and again, like 98MB,1.2GiB (default: from the first cache to beyond the last)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_flag("--save", options->save,
                "measure single kernels as well, and keep all as this machine's profile for octavo plan");
  app->add_option("--model", options->models, "with --save: time this model's own steps; may be given several times")
      ->allow_extra_args(false);
  app->add_option("--output", options->output, "with --save: the profile's file (default: in the cache folder)");
  app->add_flag("--json", options->json, "print JSON");
  return {app, [options] { return run_probe(*options); }};
}

}  // namespace octavo
