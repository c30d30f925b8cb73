// octavo bench kernels: each kernel on synthetic data, beside the probed peak. No model is loaded.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "cli/commands.h"
#include "cli/jsonl.h"
#include "cli/progress.h"
#include "cli/validators.h"
#include "octavo/kernel_bench.h"

namespace octavo {
namespace {

struct BenchKernelsOptions {
  KernelBenchConfig config;
  std::vector<std::string> kv_types = {"bf16"}, only;
  bool json = false;
};

std::string speed_columns(const KernelSpeed& speed) {
  return fmt::format("{:>12.1f}{:>12.1f}{:>10.1f}{:>7.0f} %{:>9.1f}{:>7.0f} %", speed.min_us, speed.median_us,
                     speed.gops, 100 * speed.peak_share, speed.gbytes, 100 * speed.read_share);
}

void print_table(const KernelBenchConfig& config, const KernelBenchReport& report) {
  const ProbeReport& peaks = report.peaks;
  const bool one = peaks.threads == 1;
  fmt::print("{}, {}, {} thread{}\n", peaks.cpu, report.isa, peaks.threads, one ? "" : "s");
  for (const auto& [name, peak] : {std::pair{"int8", &peaks.int8}, {"bf16", &peaks.bf16}, {"f32", &peaks.f32}}) {
    fmt::print("peak {:<5}{:>8.1f} Gop/s   {}\n", name, one ? peak->one : peak->all, peak->kind);
  }
  const std::string columns =
      fmt::format("{:>12}{:>12}{:>10}{:>9}{:>9}{:>9}", "min us", "median us", "Gop/s", "of peak", "GB/s", "of read");
  if (!report.gemm.empty()) {
    fmt::print("\n{:<30}{}\n", fmt::format("products, {} x {}", config.outputs, config.inputs), columns);
  }
  for (const GemmRow& row : report.gemm) {
    fmt::print("{:<30}{}\n", fmt::format("{:<8}{:>6} row{}", row.format, row.rows, row.rows == 1 ? "" : "s"),
               speed_columns(row.speed));
  }
  if (!report.attention.empty()) {
    fmt::print("\n{:<30}{}\n", fmt::format("attention, {} KV head{}", config.kv_heads, config.kv_heads == 1 ? "" : "s"),
               columns);
  }
  for (const AttentionRow& row : report.attention) {
    fmt::print("{:<30}{}\n",
               fmt::format("{:<5}D {:<4}G {:<2}{:>6} {}", kv_type_name(row.kv_type), row.head_dim, row.group, row.depth,
                           row.queries == 1 ? fmt::format("x {}", row.sequences) : "prefill"),
               speed_columns(row.speed));
  }
  if (!report.sampling.empty()) {
    fmt::print("\n{:<30}{:>12}{:>12}\n", fmt::format("sampling, {} tokens", config.vocab), "min us", "median us");
  }
  for (const SamplingRow& row : report.sampling) {
    fmt::print("{:<30}{:>12.1f}{:>12.1f}\n", row.what + (row.flat ? ", flat" : ""), row.min_us, row.median_us);
  }
}

Json with_speed(Json row, const KernelSpeed& speed) {
  row.update({{"min_us", speed.min_us},
              {"median_us", speed.median_us},
              {"gops", speed.gops},
              {"peak_share", speed.peak_share},
              {"gbytes_per_s", speed.gbytes},
              {"read_share", speed.read_share}});
  return row;
}

Json to_json(const KernelBenchConfig& config, const KernelBenchReport& report) {
  Json gemm = Json::array(), attention = Json::array(), sampling = Json::array(), peaks = Json::object();
  const ProbeReport& probed = report.peaks;
  for (const auto& [name, peak] : {std::pair{"int8", &probed.int8}, {"bf16", &probed.bf16}, {"f32", &probed.f32}}) {
    peaks[name] = {{"kind", peak->kind}, {"gops", probed.threads == 1 ? peak->one : peak->all}};
  }
  for (const GemmRow& row : report.gemm) {
    gemm.push_back(with_speed({{"format", row.format}, {"rows", row.rows}}, row.speed));
  }
  for (const AttentionRow& row : report.attention) {
    attention.push_back(with_speed({{"kv_type", kv_type_name(row.kv_type)},
                                    {"head_dim", row.head_dim},
                                    {"group", row.group},
                                    {"depth", row.depth},
                                    {"queries", row.queries},
                                    {"sequences", row.sequences},
                                    {"kv_heads", row.kv_heads},
                                    {"kv_bytes_per_token", row.kv_bytes_per_token}},
                                   row.speed));
  }
  for (const SamplingRow& row : report.sampling) {
    sampling.push_back({{"what", row.what}, {"flat", row.flat}, {"min_us", row.min_us}, {"median_us", row.median_us}});
  }
  return {{"cpu", probed.cpu},   {"isa", report.isa},         {"threads", probed.threads},
          {"peaks", peaks},      {"outputs", config.outputs}, {"inputs", config.inputs},
          {"gemm", gemm},        {"attention", attention},    {"vocab", config.vocab},
          {"sampling", sampling}};
}

Result<> bench_kernels(BenchKernelsOptions& options) {
  KernelBenchConfig& config = options.config;
  config.kv_types.clear();
  for (const std::string& name : options.kv_types) {
    OCTAVO_TRY(const KvType type, parse_kv_type(name));
    config.kv_types.push_back(type);
  }
  const auto wanted = [&](const char* part) {
    return options.only.empty() || std::find(options.only.begin(), options.only.end(), part) != options.only.end();
  };
  if (!wanted("gemm")) config.rows.clear();
  if (!wanted("attention")) config.kv_types.clear();
  if (!wanted("sampling")) config.vocab = 0;
  config.isa = environment("OCTAVO_ISA");
  ProgressBar bar(ProgressBar::Unit::kItems);
  OCTAVO_TRY(const KernelBenchReport report,
             bench_kernels(config, [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
               bar.update(what, done, total);
             }));
  if (options.json) {
    std::cout << dump(to_json(config, report)) << std::endl;
  } else {
    print_table(config, report);
  }
  return Ok{};
}

}  // namespace

Command bench_kernels_command(CLI::App& bench) {
  auto options = std::make_shared<BenchKernelsOptions>();
  KernelBenchConfig& config = options->config;
  CLI::App* app = bench.add_subcommand("kernels", "Measure kernels on synthetic data; OCTAVO_ISA chooses their table");
  const auto list = [app](const char* flag, auto& values, const char* about) {
    return app->add_option(flag, values, about)->delimiter(',')->allow_extra_args(false)->capture_default_str();
  };
  app->add_option("--threads", config.threads, "that share a kernel's work; 0: the cores this process may use")
      ->check(whole_number(0, 1024))
      ->capture_default_str();
  list("--only", options->only, "gemm, attention or sampling (default: all)")
      ->check(CLI::IsMember({"gemm", "attention", "sampling"}));
  list("--formats", config.formats, "weight formats, like Q4_K,Q8_0 (default: all)");
  list("--rows", config.rows, "of activations")->check(whole_number(1, 8192));
  app->add_option("--outputs", config.outputs, "of the matrix")
      ->check(whole_number(1, 1U << 20U))
      ->capture_default_str();
  app->add_option("--inputs", config.inputs, "of the matrix; a multiple of 256")
      ->check(whole_number(256, 1U << 16U))
      ->capture_default_str();
  list("--kv-types", options->kv_types, "of the KV cache")->check(CLI::IsMember({"bf16", "f16", "f32"}));
  list("--head-dims", config.head_dims, "of attention heads; multiples of 16")->check(whole_number(16, 256));
  list("--groups", config.groups, "query heads per KV head")->check(whole_number(1, 64));
  app->add_option("--kv-heads", config.kv_heads, "of the attention shapes")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  list("--depths", config.depths, "tokens before the queries")->check(whole_number(0, 1U << 20U));
  app->add_option("--vocab", config.vocab, "of the sampled rows")
      ->check(whole_number(256, 1U << 22U))
      ->capture_default_str();
  app->add_flag("--json", options->json, "print JSON");
  return {app, [options] { return bench_kernels(*options); }};
}

}  // namespace octavo
