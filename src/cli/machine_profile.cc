#include "cli/machine_profile.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "cli/bench_runs.h"
#include "cli/model_work.h"
#include "cli/progress.h"
#include "octavo/kernel_bench.h"
#include "octavo/trace.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kBudget = 512;  // the longest chunk that is timed
constexpr std::uint32_t kSeats = 64;    // the most rows
constexpr std::uint32_t kDepth = 2048;
constexpr std::uint32_t kShort = 16;  // of prompts whose decode is timed at the start
constexpr std::uint32_t kRounds = 4, kLeastRounds = 2, kDecodeSteps = 12;
constexpr double kFast = 0.25;                     // seconds of 64 tokens, for the longest shapes
constexpr std::uint64_t kReadSet = 256ULL << 20U;  // beyond the caches
constexpr std::chrono::seconds kEnough{60};        // no further round begins after that

std::string now_utc() { return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr))); }

/// Products and attention of every format and KV type, at the median: what the machine does, not what it can.
KernelBenchConfig machine_bench(std::uint32_t threads) {
  KernelBenchConfig config;
  config.threads = threads;
  config.kv_types = {KvType::kF32, KvType::kF16, KvType::kBF16};
  config.head_dims = {64, 128, 256};
  config.groups = {1, 4, 8};
  config.depths = {1024};
  return config;
}

void add_gemm(const KernelBenchConfig& config, const std::vector<GemmRow>& rows, MachineProfile& out) {
  const double weights = 1.0 * config.outputs * config.inputs;
  for (const GemmRow& row : rows) {
    if (out.gemm.empty() || out.gemm.back().format != row.format) out.gemm.push_back({row.format, {}, {}});
    out.gemm.back().rows.push_back(row.rows);
    out.gemm.back().ns_per_weight.push_back(1e3 * row.speed.median_us / weights);
  }
}

/// Rows come in pairs: one query of many sequences, then a tile of one.
void add_attention(const std::vector<AttentionRow>& rows, MachineProfile& out) {
  constexpr double kKvHeads = 2;  // of the bench
  for (const AttentionRow& row : rows) {
    double keys = 0;
    for (std::uint32_t i = 0; i < row.queries; ++i) keys += row.depth + i + 1;
    const double ns = 1e3 * row.speed.median_us / (keys * kKvHeads * row.sequences);
    if (row.queries == 1) out.attention.push_back({kv_type_name(row.kv_type), row.head_dim, row.group, ns, 0});
    if (row.queries > 1 && !out.attention.empty()) out.attention.back().chunk_key_ns = ns;
  }
}

/// Runs requests and collects what the engine's log says of their steps.
class StepCollector {
 public:
  explicit StepCollector(Engine& engine) : engine_(engine) { skip(); }

  /// `streams` prompts of `prompt` tokens, each answered by `output`. Fails with the first of them that does.
  Result<> run(std::uint32_t streams, std::uint32_t prompt, std::uint32_t output) {
    std::vector<Request> requests;
    for (std::uint32_t i = 0; i < streams; ++i) {
      requests.push_back(bench_request(engine_.report().model, seed_++, prompt, output));
    }
    OCTAVO_TRY(const auto done, engine_.generate(std::move(requests)));
    collect(streams == 1);
    return Ok{};
  }
  /// Forgets what ran since.
  void skip() {
    const auto steps = engine_.recent_steps(1);
    if (!steps.empty()) last_ = steps.back().record.step;
  }
  [[nodiscard]] const std::vector<TimedStep>& steps() const { return steps_; }

 private:
  /// Steps of decoding alone, and of one prompt alone: what is mixed tells nothing apart.
  void collect(bool prompts) {
    for (const RecentStep& step : engine_.recent_steps(1024)) {
      const StepRecord& r = step.record;
      if (r.step <= last_ || step.batch.empty()) continue;
      last_ = r.step;
      const bool decode = r.decode_rows == r.rows;
      if (!decode && !(prompts && r.rows == 1)) continue;
      TimedStep timed{{}, 1e3 * static_cast<double>(r.run_us), 1e3 * static_cast<double>(r.duration_us)};
      for (const BatchRow& row : step.batch) {
        timed.rows.push_back({row.first_position, row.tokens, r.sampled_tokens > 0 ? 1U : 0U});
      }
      steps_.push_back(std::move(timed));
    }
  }

  Engine& engine_;
  std::uint64_t last_ = 0, seed_ = 0;
  std::vector<TimedStep> steps_;
};

struct Shape {
  std::uint32_t streams, prompt, output;
};

/// Every shape that the engine has room for. A model whose prompts take long gets shorter ones: `sixty_four` is the
/// time of 64 tokens.
std::vector<Shape> shapes_for(const EngineReport& report, double sixty_four) {
  std::uint32_t slower = 1;  // by powers of two
  while (slower < 8 && sixty_four > kFast * slower) slower *= 2;
  std::vector<Shape> all;
  for (std::uint32_t tokens = 1; tokens <= kBudget / std::min(slower, 4U); tokens *= 2) {
    all.insert(all.end(), tokens <= kShort ? 3 : 1, {1, tokens, 1});  // short steps stumble more
  }
  for (std::uint32_t streams = 1; streams <= kSeats / std::min(slower, 4U); streams *= 2) {
    all.push_back({streams, kShort, kDecodeSteps});
  }
  all.push_back({1, kDepth / slower, kDecodeSteps});
  all.push_back({4, kDepth / 4 / slower, 4 * kDecodeSteps});  // outputs long enough to be there all at once
  std::erase_if(all, [&](const Shape& s) {
    const std::uint32_t each = s.prompt + s.output;
    return each > report.max_model_len || std::uint64_t{each} * s.streams > report.tokens_that_fit ||
           s.streams > report.max_num_seqs || s.prompt > std::max(report.max_num_batched_tokens, kDepth);
  });
  return all;
}

/// Of the weights that a token with logits goes through, those of the output head; by their number.
double head_share(const ModelInfo& model) {
  const double head = 1.0 * model.vocab_size * model.width;
  return head / (head + layer_macs(model));
}

}  // namespace

Result<MachineProfile> measure_machine(std::uint32_t threads) {
  const KernelBenchConfig config = machine_bench(threads);
  ProgressBar progress(ProgressBar::Unit::kItems);
  OCTAVO_TRY(const KernelBenchReport kernels,
             bench_kernels(config, [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
               progress.update(what, done, total);
             }));
  MachineProfile out;
  out.cpu = kernels.peaks.cpu;
  out.isa = kernels.isa;
  out.threads = kernels.peaks.threads;
  out.measured = now_utc();
  OCTAVO_TRY(const ReadRate read, probe_read(std::min(kReadSet, available_memory_bytes() / 4), threads));
  out.read_gbytes = read.median;
  out.empty_region_us = kernels.peaks.empty_region.median_us;
  out.joined_region_us = kernels.peaks.joined_region.median_us;
  out.sample_ns = kernels.sampling.empty() ? 0 : 1e3 * kernels.sampling.front().median_us;
  add_gemm(config, kernels.gemm, out);
  add_attention(kernels.attention, out);
  return out;
}

void prepare_for_profile(EngineConfig& config) {
  config.prefix_caching = false;
  config.max_num_seqs = kSeats;
  config.max_num_batched_tokens = kBudget;
}

Result<ModelProfile> measure_model(Engine& engine, Numerics numerics) {
  const EngineReport& report = engine.report();
  StepCollector collector(engine);
  OCTAVO_CHECK_OK(collector.run(1, kShort, 4));  // code and data to where they will be
  const auto at = Clock::now();
  OCTAVO_CHECK_OK(collector.run(1, 64, 1));
  const double sixty_four = std::chrono::duration<double>(Clock::now() - at).count();
  ProgressBar progress(ProgressBar::Unit::kItems);
  const std::vector<Shape> shapes = shapes_for(report, sixty_four);
  const auto begin = Clock::now();
  for (std::uint32_t round = 0; round < kRounds && (round < kLeastRounds || Clock::now() - begin < kEnough); ++round) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Shape& s = shapes[i];
      progress.update(fmt::format("steps of {}: {} x {} tokens", report.model.name, s.streams, s.prompt),
                      round * shapes.size() + i, kRounds * shapes.size());
      OCTAVO_CHECK_OK(collector.run(s.streams, s.prompt, s.output));
    }
  }
  std::vector<std::uint32_t> windows;
  for (const LayerInfo& layer : report.model.layers) windows.push_back(layer.window);
  OCTAVO_TRY(StepCurve curve, fit_step_curve(windows, head_share(report.model), collector.steps()));
  return ModelProfile{report.model.name, report.model.weights_bytes, numerics_name(numerics),
                      kv_type_name(report.kv_type), std::move(curve)};
}

}  // namespace octavo
