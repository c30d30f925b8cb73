// octavo probe: what this machine can reach at most.
#include "octavo/probe.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/jsonl.h"

namespace octavo {
namespace {

struct ProbeOptions {
  std::uint32_t threads = 0;
  bool json = false;
};

Json to_json(const ProbeReport& report) {
  Json reads = Json::array();
  for (const ReadRate& rate : report.read) {
    reads.push_back({{"threads", rate.threads}, {"gbytes_per_s", rate.gbytes_per_s}});
  }
  return {{"cpu", report.cpu},
          {"threads", report.threads},
          {"int8_kind", report.int8_kind},
          {"int8_gops_one", report.int8_gops_one},
          {"int8_gops_all", report.int8_gops_all},
          {"f32_kind", report.f32_kind},
          {"f32_gflops_one", report.f32_gflops_one},
          {"f32_gflops_all", report.f32_gflops_all},
          {"read", reads}};
}

Result<> run_probe(const ProbeOptions& options) {
  OCTAVO_TRY(const ProbeReport report, probe(options.threads));
  if (options.json) {
    std::cout << dump(to_json(report)) << std::endl;
    return Ok{};
  }
  fmt::print("{}, {} threads\n", report.cpu, report.threads);
  fmt::print("int8   {:8.1f} Gop/s    on one thread, {:8.1f} on all   ({})\n", report.int8_gops_one,
             report.int8_gops_all, report.int8_kind);
  fmt::print("f32    {:8.1f} Gflop/s  on one thread, {:8.1f} on all   ({})\n", report.f32_gflops_one,
             report.f32_gflops_all, report.f32_kind);
  for (const ReadRate& rate : report.read) {
    fmt::print("read   {:8.1f} GB/s     on {} thread{}\n", rate.gbytes_per_s, rate.threads,
               rate.threads == 1 ? "" : "s");
  }
  return Ok{};
}

}  // namespace

Command probe_command(CLI::App& program) {
  auto options = std::make_shared<ProbeOptions>();
  CLI::App* app = program.add_subcommand("probe", "Measure this machine's peaks: int8, f32 and reading memory");
  app->add_option("--threads", options->threads, "default: the cores this process may use")
      ->check(CLI::Range(1U, 1024U));
  app->add_flag("--json", options->json, "print JSON");
  return {app, [options] { return run_probe(*options); }};
}

}  // namespace octavo
