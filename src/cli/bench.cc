// octavo bench: tok/s of prefill and decode, beside the share of what this machine can reach at most.
#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/jsonl.h"
#include "cli/progress.h"
#include "cli/requests.h"
#include "octavo/probe.h"

namespace octavo {
namespace {

struct BenchOptions {
  EngineOptions engine;
  std::uint32_t prefill = 512, decode = 64, repeats = 5;
  std::vector<std::uint32_t> batches = {1, 4, 16, 32};
  bool json = false;
};

struct Row {
  std::string test;  // "prefill 512", "decode 64"
  std::uint32_t batch = 0;
  double median = 0, best = 0;  // tok/s of the whole batch
  double int8_gops = 0;         // of the matrix products, at the median
  double read_gbytes = 0;       // weights, once a step, per second; decode only
  std::uint64_t hash = 0;       // of all output tokens
};

/// Multiply-adds of the matrix products one token goes through, the output head apart.
double layer_macs(const ModelInfo& model) {
  double macs = 0;
  for (const LayerInfo& layer : model.layers) {
    const double heads = 2.0 * layer.num_heads + 2.0 * layer.num_kv_heads;  // q and o, k and v
    macs += heads * layer.head_dim * model.width + 3.0 * model.width * model.ffn_width;
  }
  return macs;
}

class Bench {
 public:
  Bench(Engine& engine, const BenchOptions& options) : engine_(engine), options_(options) {}

  Result<std::vector<Row>> run() {
    const double macs = layer_macs(model()), head_macs = 1.0 * model().width * model().vocab_size;
    std::vector<Row> rows;
    if (options_.prefill > 0) {  // more prompts at a time would fill the same steps
      OCTAVO_TRY(Row row, measure(1, options_.prefill, 0));
      row.int8_gops = 2e-9 * row.median * (macs + head_macs / options_.prefill);
      rows.push_back(row);
    }
    for (const std::uint32_t batch : options_.batches) {
      if (options_.decode > 0) {
        OCTAVO_TRY(Row row, measure(batch, 1, options_.decode));
        row.int8_gops = 2e-9 * row.median * (macs + head_macs);
        row.read_gbytes = 1e-9 * row.median / batch * static_cast<double>(engine_.report().packed_weights_bytes);
        rows.push_back(row);
      }
    }
    return rows;
  }

 private:
  using Seconds = std::chrono::duration<double>;

  [[nodiscard]] const ModelInfo& model() const { return engine_.report().model; }

  /// The same prompts in every process, different ones in every repeat: no prefix is met twice.
  [[nodiscard]] Request request(std::uint32_t prompt_tokens, std::uint32_t decode) {
    Request out;
    for (std::uint32_t i = 0; i < prompt_tokens; ++i) {
      random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
      out.prompt.push_back(TokenId{static_cast<std::int32_t>((random_ >> 33U) % model().vocab_size)});
    }
    out.params.max_tokens = decode + 1;  // the first token belongs to the prefill
    out.params.temperature = 0;
    out.params.ignore_eos = true;
    return out;
  }

  /// Seconds of one run of the batch: the prefill up to the last first token, or the decode after it.
  Result<double> time_once(std::uint32_t batch, std::uint32_t prompt_tokens, std::uint32_t decode,
                           std::vector<TokenId>& output) {
    std::vector<Request> requests;
    for (std::uint32_t i = 0; i < batch; ++i) requests.push_back(request(prompt_tokens, decode));
    const auto outcomes = run_requests(engine_, std::move(requests), OnEvent{});
    auto begin = std::chrono::microseconds::max();
    std::chrono::microseconds first{}, last{};
    for (const Outcome& outcome : outcomes) {
      if (outcome.error) return *outcome.error;
      const Completion& completion = outcome.choices.front();
      begin = std::min(begin, completion.timings.scheduled);
      first = std::max(first, completion.timings.first_token);
      last = std::max(last, completion.timings.last_token);
      output.insert(output.end(), completion.tokens.begin(), completion.tokens.end());
    }
    return Seconds(decode == 0 ? first - begin : last - first).count();
  }

  Result<Row> measure(std::uint32_t batch, std::uint32_t prompt_tokens, std::uint32_t decode) {
    Row row{.test = decode == 0 ? fmt::format("prefill {}", prompt_tokens) : fmt::format("decode {}", decode),
            .batch = batch};
    std::vector<TokenId> output;
    random_ = 0x0c7a50 + prompt_tokens;
    std::vector<double> rates;
    for (std::uint32_t repeat = 0; repeat <= options_.repeats; ++repeat) {
      progress_.update(fmt::format("{}, batch {}", row.test, batch), repeat, options_.repeats + 1);
      OCTAVO_TRY(const double seconds, time_once(batch, prompt_tokens, decode, output));
      const double tokens = 1.0 * batch * (decode == 0 ? prompt_tokens : decode);
      if (repeat > 0) rates.push_back(tokens / std::max(seconds, 1e-6));  // the first run warms up
    }
    std::sort(rates.begin(), rates.end());
    row.median = rates[rates.size() / 2];
    row.best = rates.back();
    row.hash = XXH64(output.data(), output.size() * sizeof(TokenId), 0);
    return row;
  }

  Engine& engine_;
  const BenchOptions& options_;
  ProgressBar progress_{ProgressBar::Unit::kItems};
  std::uint64_t random_ = 0;
};

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

void print_table(const EngineReport& report, const ProbeReport& peak, const std::vector<Row>& rows) {
  fmt::print("{}, {}, {} threads, KV {}\n", report.model.name, report.isa, report.threads,
             kv_type_name(report.kv_type));
  fmt::print("{}: {:.0f} int8 Gop/s ({}), reads {:.1f} GB/s\n\n", peak.cpu, peak.int8_gops_all, peak.int8_kind,
             peak.peak_read_gbytes_per_s());
  fmt::print("{:<14}{:>6}{:>12}{:>12}{:>12}{:>9}{:>10}{:>9}   {}\n", "test", "batch", "tok/s", "best", "int8 Gop/s",
             "of peak", "read GB/s", "of peak", "output hash");
  for (const Row& row : rows) {
    const bool reads = row.read_gbytes > 0;
    fmt::print("{:<14}{:>6}{:>12.1f}{:>12.1f}{:>12.1f}{:>7.0f} %{:>10}{:>9}   {:016x}\n", row.test, row.batch,
               row.median, row.best, row.int8_gops, percent(row.int8_gops, peak.int8_gops_all),
               reads ? fmt::format("{:.1f}", row.read_gbytes) : "",
               reads ? fmt::format("{:.0f} %", percent(row.read_gbytes, peak.peak_read_gbytes_per_s())) : "", row.hash);
  }
}

void print_json(const EngineReport& report, const ProbeReport& peak, const std::vector<Row>& rows) {
  Json list = Json::array();
  for (const Row& row : rows) {
    list.push_back({{"test", row.test},
                    {"batch", row.batch},
                    {"tokens_per_s", row.median},
                    {"tokens_per_s_best", row.best},
                    {"int8_gops", row.int8_gops},
                    {"int8_share", row.int8_gops / peak.int8_gops_all},
                    {"read_gbytes_per_s", row.read_gbytes},
                    {"read_share", row.read_gbytes / peak.peak_read_gbytes_per_s()},
                    {"output_hash", fmt::format("{:016x}", row.hash)}});
  }
  const Json machine = {
      {"cpu", peak.cpu}, {"int8_gops", peak.int8_gops_all}, {"read_gbytes_per_s", peak.peak_read_gbytes_per_s()}};
  std::cout << dump({{"model", report.model.name},
                     {"isa", report.isa},
                     {"threads", report.threads},
                     {"kv_type", kv_type_name(report.kv_type)},
                     {"machine", machine},
                     {"results", list}})
            << std::endl;
}

Result<> bench(BenchOptions& options) {
  EngineConfig& config = options.engine.config;
  config.max_num_seqs =
      std::max(config.max_num_seqs, *std::max_element(options.batches.begin(), options.batches.end()));
  OCTAVO_TRY(const ProbeReport peak, probe(config.threads));
  OCTAVO_TRY(const std::unique_ptr<Engine> engine, load_engine(options.engine));
  OCTAVO_TRY(const std::vector<Row> rows, Bench(*engine, options).run());
  (options.json ? print_json : print_table)(engine->report(), peak, rows);
  if (const auto preemptions = engine->stats().preemptions; preemptions > 0) {
    fmt::print(stderr, "octavo bench: {} preemptions: the KV pool is too small for these batches (--kv-bytes)\n",
               preemptions);
  }
  return Ok{};
}

}  // namespace

Command bench_command(CLI::App& program) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* app = program.add_subcommand("bench", "Measure speed, beside what the machine can reach");
  app->add_option("--prefill", options->prefill, "prompt tokens of the prefill test; 0: none")
      ->check(CLI::Range(0U, 1U << 20U))
      ->capture_default_str();
  app->add_option("--decode", options->decode, "generated tokens of the decode test; 0: none")
      ->check(CLI::Range(0U, 1U << 20U))
      ->capture_default_str();
  app->add_option("--batch", options->batches, "batch sizes of the decode test")
      ->delimiter(',')
      ->check(CLI::Range(1U, 1024U))
      ->allow_extra_args(false)
      ->capture_default_str();
  app->add_option("--repeats", options->repeats, "measured runs of each test")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  app->add_flag("--json", options->json, "print JSON");
  add_engine_options(*app, options->engine, ModelWord::kPositional);
  const Command kv = bench_kv_command(*app);
  return {app, [options, kv] { return kv.app->parsed() ? kv.run() : bench(*options); }};
}

}  // namespace octavo
