#include "cli/model_bench.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "cli/model_work.h"
#include "cli/progress.h"
#include "cli/requests.h"

namespace octavo {
namespace {

using Micros = std::chrono::microseconds;

double seconds(Micros time) { return std::chrono::duration<double>(time).count(); }

/// Of keys that the queries at positions [begin, end) see in one layer.
double keys_seen(const LayerInfo& layer, std::uint32_t begin, std::uint32_t end) {
  double keys = 0;
  for (std::uint32_t p = begin; p < end; ++p) keys += layer.window == 0 ? p + 1 : std::min(p + 1, layer.window);
  return keys;
}

/// What one run of a test has to compute and to read.
struct Work {
  double linear_ops = 0, attention_ops = 0;
  double read_bytes = 0, working_set_bytes = 0;  // over all steps; of one
};

Work work_of(const ModelTest& test, const EngineReport& report) {
  const ModelInfo& model = report.model;
  const bool prefill = test.kind == ModelTest::Kind::kPrefill;
  const double tokens = 1.0 * test.tokens * test.streams;
  const double heads = prefill ? test.streams : tokens;  // rows that get logits
  Work work;
  work.linear_ops = 2 * (tokens * layer_macs(model) + heads * model.width * model.vocab_size);
  const std::uint32_t begin = prefill ? test.depth : std::max(test.depth, 1U);
  const double element = report.kv_type == KvType::kF32 ? 4 : 2;
  double kv_bytes = 0;
  for (const LayerInfo& layer : model.layers) {
    const double keys = test.streams * keys_seen(layer, begin, begin + test.tokens);
    work.attention_ops += 4 * keys * layer.num_heads * layer.head_dim;
    kv_bytes += 2 * keys * layer.num_kv_heads * layer.head_dim * element;
  }
  const auto weights = static_cast<double>(report.step_weights_bytes);
  const double steps =
      prefill ? (test.tokens + report.max_num_batched_tokens - 1) / report.max_num_batched_tokens : test.tokens;
  if (prefill) kv_bytes /= test.tokens;  // a tile of queries shares what it reads: at least once for all of them
  work.read_bytes = steps * weights + kv_bytes;
  work.working_set_bytes = work.read_bytes / steps;
  return work;
}

struct Run {
  double tokens = 0, seconds = 0;
};

class ModelBench {
 public:
  ModelBench(Engine& engine, std::uint32_t repeats) : engine_(engine), repeats_(repeats) {}

  /// Rates of the measured runs, ascending, and a hash of all output.
  Result<std::pair<std::vector<double>, std::uint64_t>> measure(const ModelTest& test) {
    random_ = 0x0c7a50 + test.tokens;
    std::vector<std::vector<TokenId>> before(test.streams);
    for (std::vector<TokenId>& tokens : before) tokens = random_tokens(test.depth);
    std::vector<TokenId> output;
    std::vector<double> rates;
    for (std::uint32_t repeat = 0; repeat <= repeats_; ++repeat) {  // the first warms up, and fills the prefix cache
      progress_.update(fmt::format("{}, {} streams at depth {}", test.name(), test.streams, test.depth), repeat,
                       repeats_ + 1);
      OCTAVO_TRY(const Run run, run_once(test, before, output));
      if (repeat == 0) continue;
      if (test.kind == ModelTest::Kind::kPrefill && test.depth > 0 && run.tokens > test.tokens + test.depth / 2) {
        return Error{ErrorCode::kExhausted, "the KV pool does not keep the prefix: raise --kv-bytes", "kv_bytes"};
      }
      rates.push_back(run.tokens / std::max(run.seconds, 1e-6));
    }
    std::sort(rates.begin(), rates.end());
    return std::pair{std::move(rates), XXH64(output.data(), output.size() * sizeof(TokenId), 0)};
  }

 private:
  /// The same in every process; no two prompts share more than they should.
  std::vector<TokenId> random_tokens(std::uint32_t count) {
    std::vector<TokenId> out;
    for (std::uint32_t i = 0; i < count; ++i) {
      random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
      out.push_back(TokenId{static_cast<std::int32_t>((random_ >> 33U) % engine_.report().model.vocab_size)});
    }
    return out;
  }

  Request request(const ModelTest& test, const std::vector<TokenId>& before) {
    const bool prefill = test.kind == ModelTest::Kind::kPrefill;
    Request out;
    out.prompt = before;
    const auto more = random_tokens(prefill ? test.tokens : test.depth == 0 ? 1 : 0);
    out.prompt.insert(out.prompt.end(), more.begin(), more.end());
    out.params.max_tokens = prefill ? 1 : test.tokens + 1;  // the first token belongs to the prompt
    out.params.temperature = 0;
    out.params.ignore_eos = true;
    return out;
  }

  /// Prefill: prompt tokens computed up to the last first token. Decode: tokens after it.
  Result<Run> run_once(const ModelTest& test, const std::vector<std::vector<TokenId>>& before,
                       std::vector<TokenId>& output) {
    std::vector<Request> requests;
    for (const std::vector<TokenId>& tokens : before) requests.push_back(request(test, tokens));
    std::vector<std::pair<Micros, std::size_t>> arrivals;
    const auto outcomes = run_requests(engine_, std::move(requests), [&](std::size_t, const OutputEvent& event) {
      arrivals.emplace_back(event.timings.last_token, event.tokens.size());
    });
    Micros begin = Micros::max();
    Micros first{}, last{};
    double computed = 0;
    for (const Outcome& outcome : outcomes) {
      if (outcome.error) return *outcome.error;
      const Completion& completion = outcome.choices.front();
      begin = std::min(begin, completion.timings.scheduled);
      first = std::max(first, completion.timings.first_token);
      last = std::max(last, completion.timings.last_token);
      computed += completion.usage.prompt_tokens - completion.usage.cached_tokens;
      output.insert(output.end(), completion.tokens.begin(), completion.tokens.end());
    }
    if (test.kind == ModelTest::Kind::kPrefill) return Run{computed, seconds(first - begin)};
    Run run{0, seconds(last - first)};
    for (const auto& [when, tokens] : arrivals) {
      if (when > first) run.tokens += static_cast<double>(tokens);
    }
    return run;
  }

  Engine& engine_;
  std::uint32_t repeats_;
  ProgressBar progress_{ProgressBar::Unit::kItems};
  std::uint64_t random_ = 0;
};

/// Why the engine has no room for a test; empty if it has.
std::string no_room(const ModelTest& test, const EngineReport& report) {
  const std::uint64_t each = std::uint64_t{test.depth} + test.tokens + 2;
  if (each > report.max_model_len) {
    return fmt::format("the longest request is {} tokens{}", report.max_model_len,
                       report.max_model_len_reason.empty() ? "" : " (" + report.max_model_len_reason + ")");
  }
  if (each * test.streams > report.tokens_that_fit) {
    return fmt::format("the KV pool holds {} tokens (--kv-bytes)", report.tokens_that_fit);
  }
  return {};
}

}  // namespace

Result<std::vector<ModelRow>> bench_model(Engine& engine, const ProbeReport& peaks, Numerics numerics,
                                          const std::vector<ModelTest>& tests, std::uint32_t repeats) {
  const EngineReport& report = engine.report();
  ModelBench bench(engine, repeats);
  const PeakRate& linear = linear_peak(report.model, peaks, numerics);
  const PeakRate& attention = report.kv_type == KvType::kBF16 ? peaks.bf16 : peaks.f32;
  std::map<std::uint64_t, ReadRate> bandwidths;
  std::vector<ModelRow> rows;
  std::vector<std::string> left_out;
  for (const ModelTest& test : tests) {
    if (test.kind == ModelTest::Kind::kPrefill && test.depth > 0 && !report.prefix_caching) {
      return Error{ErrorCode::kInvalidArgument,
                   "--depths of a prefill need the prefix cache: leave out --no-prefix-caching, keep --kv-memory paged",
                   "depths"};
    }
    if (const std::string why = no_room(test, report); !why.empty()) {
      left_out.push_back(fmt::format("no {} of {} tokens at depth {}, {} streams: {}", test.name(), test.tokens,
                                     test.depth, test.streams, why));
      continue;
    }
    OCTAVO_TRY(const auto measured, bench.measure(test));
    const auto& [rates, hash] = measured;
    const Work work = work_of(test, report);
    const auto set = static_cast<std::uint64_t>(work.working_set_bytes);
    auto bandwidth = bandwidths.find(set);
    if (bandwidth == bandwidths.end()) {
      OCTAVO_TRY(const ReadRate rate, read_rate_at(set, report.threads));
      bandwidth = bandwidths.emplace(set, rate).first;
    }
    const double tokens = 1.0 * test.tokens * test.streams;
    const double compute = 1e-9 * (work.linear_ops / linear.all + work.attention_ops / attention.all);
    const double reading = 1e-9 * work.read_bytes / bandwidth->second.best;
    ModelRow row;
    row.test = test;
    row.best = rates.back();
    row.median = rates[rates.size() / 2];
    row.limit = tokens / std::max(compute, reading);
    const double taken = tokens / row.best;
    row.gops = 1e-9 * (work.linear_ops + work.attention_ops) / taken;
    row.compute_share = compute / taken;
    row.gbytes = 1e-9 * work.read_bytes / taken;
    row.read_share = reading / taken;
    row.bandwidth = bandwidth->second;
    row.hash = hash;
    rows.push_back(row);
  }
  if (rows.empty()) return Error{ErrorCode::kExhausted, left_out.empty() ? "no tests" : left_out.front(), ""};
  for (const std::string& line : left_out) fmt::print(stderr, "octavo bench: {}\n", line);
  return rows;
}

}  // namespace octavo
