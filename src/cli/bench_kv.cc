// octavo bench kv: what KV memory strategies waste, and what the bookkeeping costs. No weights are loaded.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/jsonl.h"
#include "cli/model_names.h"
#include "octavo/kv_bench.h"

namespace octavo {
namespace {

struct BenchKvOptions {
  KvBenchConfig config;
  std::string model, kv_type = "bf16", kv_bytes;
  bool json = false;
};

const char* memory_name(KvMemory memory) {
  switch (memory) {
    case KvMemory::kPaged: return "paged";
    case KvMemory::kDynamic: return "dynamic";
    case KvMemory::kStatic: return "static";
  }
  return "";
}

std::string bytes_of(double bytes) { return human_bytes(static_cast<std::uint64_t>(bytes)); }

void print_table(const BenchKvOptions& options, const KvBenchReport& report) {
  fmt::print("{}, {} KV bytes per token as {}\n", options.model.empty() ? "the shape of Llama-3-8B" : options.model,
             report.kv_bytes_per_token, options.kv_type);
  if (!report.waste.empty()) {
    fmt::print(
        "{} requests, Azure conversation lengths: mean prompt {:.0f}, mean output {:.0f}, longest {} tokens; seed {}\n",
        options.config.requests, report.mean_prompt_tokens, report.mean_output_tokens, report.max_model_len,
        options.config.seed);
    fmt::print("a pool of {}, up to {} sequences, {} tokens a step\n\n", human_bytes(report.waste.front().pool_bytes),
               options.config.max_num_seqs, options.config.max_num_batched_tokens);
    fmt::print("{:<13}{:>10}{:>10}{:>16}{:>10}{:>16}{:>9}{:>8}{:>8}{:>12}\n", "strategy", "reserved", "used",
               "internal waste", "free", "external waste", "running", "done", "moves", "preemptions");
  }
  for (const KvWasteRow& row : report.waste) {
    fmt::print("{:<13}{:>10}{:>10}{:>14.2f} %{:>8.2f} %{:>14.2f} %{:>9.1f}{:>8}{:>8}{:>12}\n",
               fmt::format("{} {}", memory_name(row.memory), row.block_tokens), bytes_of(row.reserved_bytes),
               bytes_of(row.used_bytes), 100 * row.internal_waste(), 100 * row.free_share(), 100 * row.external_waste(),
               row.running, row.requests, row.moves, row.preemptions);
  }
  if (report.cost.empty()) return;
  fmt::print("\n{:<26}{:>8}{:>10}\n", "us a step, decoding", "min", "median");
  for (const KvCostRow& row : report.cost) {
    fmt::print("{:<26}{:>8.2f}{:>10.2f}\n",
               fmt::format("{} running, caching {}", row.running, row.prefix_caching ? "on" : "off"), row.min_us,
               row.median_us);
  }
}

Json to_json(const BenchKvOptions& options, const KvBenchReport& report) {
  Json waste = Json::array(), cost = Json::array();
  for (const KvWasteRow& row : report.waste) {
    waste.push_back({{"strategy", memory_name(row.memory)},
                     {"block_tokens", row.block_tokens},
                     {"pool_bytes", row.pool_bytes},
                     {"reserved_bytes", row.reserved_bytes},
                     {"used_bytes", row.used_bytes},
                     {"external_bytes", row.external_bytes},
                     {"internal_waste", row.internal_waste()},
                     {"external_waste", row.external_waste()},
                     {"free_share", row.free_share()},
                     {"mean_running", row.running},
                     {"steps", row.steps},
                     {"requests_done", row.requests},
                     {"moves", row.moves},
                     {"preemptions", row.preemptions}});
  }
  for (const KvCostRow& row : report.cost) {
    cost.push_back({{"running", row.running},
                    {"prefix_caching", row.prefix_caching},
                    {"us_per_step_min", row.min_us},
                    {"us_per_step_median", row.median_us}});
  }
  return {{"model", options.model.empty() ? Json(nullptr) : Json(options.model)},
          {"kv_type", options.kv_type},
          {"kv_bytes_per_token", report.kv_bytes_per_token},
          {"max_model_len", report.max_model_len},
          {"max_num_seqs", options.config.max_num_seqs},
          {"max_num_batched_tokens", options.config.max_num_batched_tokens},
          {"requests", options.config.requests},
          {"seed", options.config.seed},
          {"mean_prompt_tokens", report.mean_prompt_tokens},
          {"mean_output_tokens", report.mean_output_tokens},
          {"waste", waste},
          {"cost", cost}};
}

Result<> bench_kv(BenchKvOptions& options) {
  OCTAVO_TRY(options.config.kv_type, parse_kv_type(options.kv_type));
  if (!options.kv_bytes.empty()) {
    OCTAVO_TRY(options.config.kv_bytes, parse_bytes(options.kv_bytes));
  }
  if (!options.model.empty()) {
    OCTAVO_TRY(const std::string path, resolve_model(options.model));
    OCTAVO_TRY(ModelInfo info, inspect_model(path, options.config.kv_type));
    options.config.layers = std::move(info.layers);
  }
  OCTAVO_TRY(const KvBenchReport report, bench_kv(options.config));
  if (options.json) {
    std::cout << dump(to_json(options, report)) << std::endl;
  } else {
    print_table(options, report);
  }
  return Ok{};
}

}  // namespace

Command bench_kv_command(CLI::App& bench) {
  auto options = std::make_shared<BenchKvOptions>();
  KvBenchConfig& config = options->config;
  CLI::App* app = bench.add_subcommand("kv", "Measure what KV memory strategies waste and the bookkeeping costs");
  app->add_option("-m,--model,MODEL", options->model, "whose layers' shape counts (default: that of Llama-3-8B)");
  app->add_option("--kv-type", options->kv_type, "element type of the KV cache")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}))
      ->capture_default_str();
  app->add_option("--kv-bytes", options->kv_bytes, "size of the KV pool, like 2GiB (default: 131072 tokens)");
  app->add_option("--max-num-seqs", config.max_num_seqs, "sequences that run at once")
      ->check(CLI::Range(1U, 4096U))
      ->capture_default_str();
  app->add_option("--max-num-batched-tokens", config.max_num_batched_tokens, "token budget of a step")
      ->check(CLI::Range(1U, 1U << 20U))
      ->capture_default_str();
  app->add_option("--requests", config.requests, "of the waste runs; 0: none")
      ->check(CLI::Range(0U, 1U << 20U))
      ->capture_default_str();
  app->add_option("--seed", config.seed, "of the lengths")->capture_default_str();
  app->add_option("--running", config.running, "sequences of the cost runs")
      ->delimiter(',')
      ->check(CLI::Range(1U, 4096U))
      ->allow_extra_args(false)
      ->capture_default_str();
  app->add_flag("--json", options->json, "print JSON");
  return {app, [options] { return bench_kv(*options); }};
}

}  // namespace octavo
