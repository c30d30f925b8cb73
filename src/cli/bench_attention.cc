// octavo bench attention: equally many query heads over fewer and fewer KV heads.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "base/environment.h"
#include "cli/bench_claims.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/model_names.h"
#include "cli/progress.h"
#include "octavo/kernel_bench.h"

namespace octavo {
namespace {

struct Heads {
  std::string model = "the shape of Llama-3-8B";
  std::uint32_t layers = 32, query = 32, kv = 8, dim = 128;
};

Result<Heads> heads_of(const std::string& model) {
  Heads heads;
  if (model.empty()) return heads;
  OCTAVO_TRY(const std::string path, resolve_model(model));
  OCTAVO_TRY(const ModelInfo info, inspect_model(path));
  if (info.layers.empty()) return Error{ErrorCode::kUnsupported, path + " has no attention layers", "MODEL"};
  const LayerInfo& layer = info.layers.front();
  heads.model = info.name;
  heads.layers = info.num_layers;
  heads.query = layer.num_heads;
  heads.kv = layer.num_kv_heads;
  heads.dim = layer.head_dim;
  return heads;
}

std::string shape_name(const Heads& heads, std::uint32_t kv) {
  return fmt::format("{} {}/{}", kv == heads.query ? "MHA" : kv == 1 ? "MQA" : "GQA", heads.query, kv);
}

/// Over the repeats, of one sequence.
struct Times {
  std::vector<double> us;
  KernelSpeed best;
  [[nodiscard]] double least() const { return *std::min_element(us.begin(), us.end()); }
};

}  // namespace

Result<BenchFinding> measure_attention(const AttentionBench& options) {
  OCTAVO_TRY(const Heads heads, heads_of(options.model));
  OCTAVO_TRY(const KvType type, parse_kv_type(options.kv_type));
  std::vector<std::uint32_t> shapes = options.kv_heads;
  if (shapes.empty()) {
    shapes = {heads.query, heads.kv, 1};
    shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  }
  for (const std::uint32_t kv : shapes) {
    if (kv > 0 && heads.query % kv == 0 && heads.query / kv <= 64) continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("--kv-heads {}: {} query heads cannot share them evenly, at most 64 each", kv, heads.query),
        "--kv-heads"};
  }
  KernelBenchConfig config;
  config.isa = environment("OCTAVO_ISA");
  config.threads = options.threads;
  config.rows = {};
  config.vocab = 0;
  config.kv_types = {type};
  config.head_dims = {heads.dim};
  config.depths = options.depths;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Times> times;  // KV heads, depth, queries
  std::map<std::uint32_t, std::uint64_t> bytes;                                    // by KV heads: of a token
  KernelBenchReport report;
  ProgressBar bar(ProgressBar::Unit::kItems);
  const std::uint64_t total = std::uint64_t{options.repeats} * shapes.size();
  for (std::uint64_t i = 0; i < total; ++i) {
    const std::size_t turn = i % shapes.size();
    config.kv_heads = shapes[i / shapes.size() % 2 == 0 ? turn : shapes.size() - 1 - turn];
    config.groups = {heads.query / config.kv_heads};
    bar.update("attention, " + shape_name(heads, config.kv_heads), i, total);
    OCTAVO_TRY(report, bench_kernels(config));
    for (const AttentionRow& row : report.attention) {
      Times& of = times[{row.kv_heads, row.depth, row.queries}];
      of.us.push_back(row.speed.min_us / row.sequences);
      if (of.best.peak_share < row.speed.peak_share) of.best = row.speed;
      bytes[row.kv_heads] = row.kv_bytes_per_token;
    }
  }

  BenchFinding finding;
  finding.name = "attention";
  finding.title = "Attention: one KV head for each query head, or fewer that are shared";
  finding.about =
      "The attention kernel on synthetic data, one layer: the same number of query heads over as many KV heads (MHA), "
      "fewer (GQA) or one (MQA). Time of one sequence: a decode step (one query token) and a prefill tile (16). What "
      "the "
      "query heads compute is the same in all; what is kept and read is not.";
  finding.conditions = {
      {"model", fmt::format("{}: {} query heads of {}, {} layers, KV {}", heads.model, heads.query, heads.dim,
                            heads.layers, options.kv_type)},
      {"machine", fmt::format("{}, {}, {} threads", report.peaks.cpu, report.isa, report.peaks.threads)},
      {"repeats", fmt::format("{}, shapes in turn; best and median of the repeats", options.repeats)}};
  HtmlTable table;
  table.head = {"shape", "depth",   "KV bytes/token", "of the first", "decode us",     "best",
                "gain",  "of read", "prefill us",     "best",         "gain, prefill", "of peak"};
  Json results = Json::array();
  BarChart kept{"KV of one token, all layers", "kB", {}, {{"kB", {}}}},
      decode{"Decode attention of one sequence", "us, median, one layer", {}, {}};
  for (const std::uint32_t depth : options.depths) decode.series.push_back({fmt::format("depth {}", depth), {}});
  for (const std::uint32_t kv : shapes) {
    const std::string name = shape_name(heads, kv);
    kept.labels.push_back(name);
    kept.series.front().second.push_back(1e-3 * static_cast<double>(bytes[kv] * heads.layers));
    decode.labels.push_back(name);
    for (std::size_t d = 0; d < options.depths.size(); ++d) {
      const std::uint32_t depth = options.depths[d];
      // A prefill tile is what has more than one query.
      const auto tile = std::prev(times.upper_bound({kv, depth, UINT32_MAX}));
      const Times& one = times[{kv, depth, 1}];
      const Times &first = times[{shapes.front(), depth, 1}],
                  &first_tile = times[{shapes.front(), depth, std::get<2>(tile->first)}];
      const double share = static_cast<double>(bytes[kv]) / static_cast<double>(bytes[shapes.front()]);
      const double gain = median(first.us) / median(one.us);
      const double tile_gain = median(first_tile.us) / median(tile->second.us);
      table.rows.push_back({name, std::to_string(depth), std::to_string(bytes[kv] * heads.layers),
                            fmt::format("{:.3g}", share), fmt::format("{:.1f}", median(one.us)),
                            fmt::format("{:.1f}", one.least()), fmt::format("{:.2f}", gain),
                            percent_text(one.best.read_share), fmt::format("{:.1f}", median(tile->second.us)),
                            fmt::format("{:.1f}", tile->second.least()), fmt::format("{:.2f}", tile_gain),
                            percent_text(tile->second.best.peak_share)});
      decode.series[d].second.push_back(median(one.us));
      results.push_back({{"shape", name},
                         {"heads", heads.query},
                         {"kv_heads", kv},
                         {"head_dim", heads.dim},
                         {"depth", depth},
                         {"kv_bytes_per_token_layer", bytes[kv]},
                         {"kv_bytes_per_token", bytes[kv] * heads.layers},
                         {"kv_share", share},
                         {"decode_us", median(one.us)},
                         {"decode_us_best", one.least()},
                         {"decode_gain", gain},
                         {"decode_read_share", one.best.read_share},
                         {"prefill_us", median(tile->second.us)},
                         {"prefill_us_best", tile->second.least()},
                         {"prefill_gain", tile_gain},
                         {"prefill_peak_share", tile->second.best.peak_share}});
    }
  }
  const std::uint32_t deepest = *std::max_element(options.depths.begin(), options.depths.end());
  const std::uint32_t other = shapes.size() > 1 ? shapes[1] : shapes[0];
  finding.tables.push_back(std::move(table));
  finding.bars = {std::move(kept), std::move(decode)};
  finding.gain =
      fmt::format("{} against {}: {:.3g} times the KV bytes, and decode attention {:.2f} times as fast at depth {}.",
                  shape_name(heads, other), shape_name(heads, shapes[0]),
                  static_cast<double>(bytes[other]) / static_cast<double>(bytes[shapes[0]]),
                  median(times[{shapes[0], deepest, 1}].us) / median(times[{other, deepest, 1}].us), deepest);
  finding.json = {
      {"bench", finding.name},      {"model", options.model.empty() ? Json(nullptr) : Json(heads.model)},
      {"isa", report.isa},          {"threads", report.peaks.threads},
      {"kv_type", options.kv_type}, {"machine", {{"cpu", report.peaks.cpu}, {"bf16_gflops", report.peaks.bf16.all}}},
      {"repeats", options.repeats}, {"layers", heads.layers},
      {"results", results}};
  return finding;
}

Command bench_attention_command(CLI::App& bench) {
  auto options = std::make_shared<AttentionBench>();
  CLI::App* app = bench.add_subcommand("attention", "Compare attention with a KV head for each query head, or fewer");
  app->add_option("-m,--model,MODEL", options->model, "whose heads count (default: those of Llama-3-8B)");
  add_list(*app, "--kv-heads", options->kv_heads, 1, 256, "shapes to compare (default: MHA, the model's own, MQA)");
  add_list(*app, "--depths", options->depths, 16, 1U << 18U, "tokens before the queries");
  app->add_option("--kv-type", options->kv_type, "element type of the KV cache")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}))
      ->capture_default_str();
  add_number(*app, "--threads", options->threads, 0, 1024, "that share the work; 0: the cores this process may use");
  add_number(*app, "--repeats", options->repeats, 1, 1000, "timed runs of each shape");
  app->add_flag("--json", options->json, "print JSON");
  return {app, [options]() -> Result<> {
            OCTAVO_TRY(const BenchFinding finding, measure_attention(*options));
            tell(finding, options->json);
            return Ok{};
          }};
}

}  // namespace octavo
