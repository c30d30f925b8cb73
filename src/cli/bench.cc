// octavo bench: tok/s of prefill and decode, beside the share of what this machine can reach at most.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/format.h"
#include "cli/jsonl.h"
#include "cli/model_bench.h"
#include "cli/validators.h"
#include "octavo/probe.h"

namespace octavo {
namespace {

using Kind = ModelTest::Kind;

struct BenchOptions {
  EngineOptions engine;
  std::uint32_t tokens = 0, repeats = 5;
  std::vector<std::uint32_t> depths = {0}, streams = {1};
  bool json = false;
};

double percent(double share) { return 100 * share; }

void print_table(const EngineReport& report, const ProbeReport& peaks, const std::vector<ModelRow>& rows) {
  fmt::print("{}, {}, {} threads, KV {}\n", report.model.name, report.isa, report.threads,
             kv_type_name(report.kv_type));
  fmt::print("{}: {:.0f} int8 Gop/s ({}), bf16 {:.0f} ({}), f32 {:.0f} ({})\n\n", peaks.cpu, peaks.int8.all,
             peaks.int8.kind, peaks.bf16.all, peaks.bf16.kind, peaks.f32.all, peaks.f32.kind);
  fmt::print("{:<9}{:>7}{:>8}{:>9}{:>11}{:>11}{:>11}{:>9}{:>9}{:>9}{:>10}{:>10}   {}\n", "test", "tokens", "depth",
             "streams", "tok/s", "median", "at most", "Gop/s", "of peak", "GB/s", "of read", "read GB/s",
             "output hash");
  for (const ModelRow& row : rows) {
    fmt::print(
        "{:<9}{:>7}{:>8}{:>9}{:>11.1f}{:>11.1f}{:>11.1f}{:>9.1f}{:>7.0f} %{:>9.1f}{:>8.0f} %{:>10.1f}   {:016x}\n",
        row.test.name(), row.test.tokens, row.test.depth, row.test.streams, row.best, row.median, row.limit, row.gops,
        percent(row.compute_share), row.gbytes, percent(row.read_share), row.bandwidth.best, row.hash);
  }
}

void print_json(const EngineReport& report, const ProbeReport& peaks, const std::vector<ModelRow>& rows) {
  Json list = Json::array();
  for (const ModelRow& row : rows) {
    list.push_back({{"test", row.test.name()},
                    {"tokens", row.test.tokens},
                    {"depth", row.test.depth},
                    {"streams", row.test.streams},
                    {"tokens_per_s", row.median},
                    {"tokens_per_s_best", row.best},
                    {"tokens_per_s_limit", row.limit},
                    {"gops", row.gops},
                    {"compute_share", row.compute_share},
                    {"read_gbytes_per_s", row.gbytes},
                    {"read_share", row.read_share},
                    {"working_set_bytes", row.bandwidth.working_set_bytes},
                    {"probed_gbytes_per_s", row.bandwidth.best},
                    {"output_hash", fmt::format("{:016x}", row.hash)}});
  }
  const Json machine = {{"cpu", peaks.cpu},
                        {"int8_gops", peaks.int8.all},
                        {"bf16_gflops", peaks.bf16.all},
                        {"f32_gflops", peaks.f32.all}};
  std::cout << dump({{"model", report.model.name},
                     {"isa", report.isa},
                     {"threads", report.threads},
                     {"kv_type", kv_type_name(report.kv_type)},
                     {"machine", machine},
                     {"results", list}})
            << std::endl;
}

Result<> bench(BenchOptions& options, const std::vector<ModelTest>& tests) {
  EngineConfig& config = options.engine.config;
  for (const ModelTest& test : tests) config.max_num_seqs = std::max(config.max_num_seqs, test.streams);
  ProbeConfig probed;
  probed.threads = config.threads;
  probed.working_sets = {1ULL << 20U};  // each test asks for the bandwidth at its own
  OCTAVO_TRY(const ProbeReport peaks, probe(probed));
  OCTAVO_TRY(const std::unique_ptr<Engine> engine, load_engine(options.engine));
  OCTAVO_TRY(const std::vector<ModelRow> rows, bench_model(*engine, peaks, config.numerics, tests, options.repeats));
  (options.json ? print_json : print_table)(engine->report(), peaks, rows);
  if (const auto preemptions = engine->stats().preemptions; preemptions > 0) {
    fmt::print(stderr, "octavo bench: {} preemptions: the KV pool is too small for these streams (--kv-bytes)\n",
               preemptions);
  }
  return Ok{};
}

void add_common(CLI::App& app, BenchOptions& options) {
  app.add_option("--repeats", options.repeats, "measured runs of each test")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
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

/// Of one kind: every number of streams at every depth.
Command tests_command(CLI::App& parent, const char* name, const char* about, Kind kind, const BenchOptions& defaults) {
  auto options = std::make_shared<BenchOptions>(defaults);
  CLI::App* app = parent.add_subcommand(name, about);
  app->add_option("--tokens", options->tokens, kind == Kind::kPrefill ? "of the prompt" : "generated by each stream")
      ->check(whole_number(1, 1U << 20U))
      ->capture_default_str();
  add_list(*app, "--depths", options->depths, 0, 1U << 20U, "tokens that stand before");
  if (options->streams.size() > 1) add_list(*app, "--streams", options->streams, 1, 1024, "that decode at once");
  add_common(*app, *options);
  return {app, [options, kind] {
            std::vector<ModelTest> tests;
            for (const std::uint32_t depth : options->depths) {
              for (const std::uint32_t streams : options->streams) {
                tests.push_back({kind, options->tokens, depth, streams});
              }
            }
            return bench(*options, tests);
          }};
}

/// An option in front of the subcommand would go unheard.
Result<> nothing_before(const CLI::App& bench, const CLI::App& sub) {
  for (const CLI::Option* option : bench.get_options()) {
    if (option->count() == 0) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} stands before '{}': write octavo bench {} {} ...", option->get_name(), sub.get_name(),
                             sub.get_name(), option->get_name()),
                 ""};
  }
  return Ok{};
}

}  // namespace

Command bench_command(CLI::App& program) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* app = program.add_subcommand(
      "bench", "Measure speed, beside what the machine can reach: a model's, or what a subcommand names");
  add_common(*app, *options);
  BenchOptions prefill, decode, batched;
  prefill.tokens = 512;
  decode.tokens = batched.tokens = 64;
  decode.depths = {0, 4096, 16384};
  batched.streams = {2, 4, 8, 16, 32};
  const std::vector<Command> commands = {
      tests_command(*app, "prefill", "Prompt tokens per second", Kind::kPrefill, prefill),
      tests_command(*app, "decode", "Generated tokens per second of one stream", Kind::kDecode, decode),
      tests_command(*app, "batched", "Generated tokens per second of many streams", Kind::kDecode, batched),
      bench_kernels_command(*app),
      bench_kv_command(*app),
      bench_serve_command(*app),
  };
  return {app, [app, options, commands]() -> Result<> {
            for (const Command& command : commands) {
              if (!command.app->parsed()) continue;
              OCTAVO_CHECK_OK(nothing_before(*app, *command.app));
              return command.run();
            }
            std::vector<ModelTest> tests = {{Kind::kPrefill, 512, 0, 1}};
            for (const std::uint32_t streams : {1U, 4U, 16U, 32U}) tests.push_back({Kind::kDecode, 64, 0, streams});
            return bench(*options, tests);
          }};
}

}  // namespace octavo
