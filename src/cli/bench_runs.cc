#include "cli/bench_runs.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/model_names.h"
#include "cli/model_work.h"
#include "cli/progress.h"
#include "cli/requests.h"

namespace octavo {
namespace {

using Micros = std::chrono::microseconds;

double millis(Micros time) { return std::chrono::duration<double, std::milli>(time).count(); }

/// Gauges of the engine, as often as a step has ended since the last look.
class Gauges {
 public:
  void look(const EngineStats& stats) {
    if (stats.steps == seen_ || stats.running == 0) return;
    seen_ = stats.steps;
    ++looks_;
    peak_ = std::max(peak_, stats.running);
    running_ += stats.running;
    reserved_ += static_cast<double>(stats.kv_reserved_bytes);
    used_ += static_cast<double>(stats.kv_used_bytes);
  }
  void tell(SideRun& run) const {
    const double looks = std::max(looks_, 1.0);
    run.peak_running = peak_;
    run.mean_running = running_ / looks;
    run.mean_reserved_bytes = reserved_ / looks;
    run.mean_used_bytes = used_ / looks;
  }

 private:
  std::uint64_t seen_ = 0;
  std::uint32_t peak_ = 0;
  double looks_ = 0, running_ = 0, reserved_ = 0, used_ = 0;
};

/// Sends a list through an engine and hears every event.
class ListRun {
 public:
  ListRun(Engine& engine, const std::vector<Request>& requests) : engine_(engine), requests_(requests) {}

  Result<std::vector<Completion>> run(std::uint32_t at_once, Gauges& gauges) {
    // Someone who is served first: while this one's step runs, all others arrive, so that whoever makes batches sees
    // all of them.
    Request first = bench_request(engine_.report().model, 0, 8, 1);
    OCTAVO_TRY(const RequestId ignored, engine_.submit(std::move(first), queue_.sink(requests_.size())));
    static_cast<void>(ignored);
    ++unfinished_;
    std::vector<Completion> done(requests_.size());
    while (next_ < requests_.size() || unfinished_ > 0) {
      while (!error_ && next_ < requests_.size() && unfinished_ - first_unfinished_ < at_once) submit_next();
      if (unfinished_ == 0) break;
      auto item = queue_.pop(std::chrono::milliseconds(1000));
      if (!item) continue;
      gauges.look(engine_.stats());
      OutputEvent& event = item->event;
      if (event.last) --unfinished_;
      if (event.error && !error_) {
        error_ = Error{event.error->code, fmt::format("request {}: {}", item->request, event.error->message), ""};
      }
      if (item->request == requests_.size()) {
        if (event.last) first_unfinished_ = 0;
        continue;
      }
      Completion& completion = done[item->request];
      completion.tokens.insert(completion.tokens.end(), event.tokens.begin(), event.tokens.end());
      completion.usage = event.usage;
      completion.timings = event.timings;
    }
    if (error_) return *error_;
    return done;
  }

 private:
  void submit_next() {
    const auto id = engine_.submit(requests_[next_], queue_.sink(next_));
    if (id) {
      ++unfinished_;
    } else {
      error_ = Error{id.error().code, fmt::format("request {}: {}", next_, id.error().message), id.error().field};
    }
    ++next_;
  }

  Engine& engine_;
  const std::vector<Request>& requests_;
  EventQueue queue_;
  std::size_t next_ = 0;
  std::uint32_t unfinished_ = 0, first_unfinished_ = 1;
  std::optional<Error> error_;
};

std::vector<double> figures(const std::vector<SideRun>& runs, const std::function<double(const SideRun&)>& figure) {
  std::vector<double> values;
  for (const SideRun& run : runs) values.push_back(figure(run));
  return values;
}

}  // namespace

Result<std::vector<Side>> load_sides(const EngineOptions& options, const std::vector<SideConfig>& configs) {
  std::vector<Side> sides;
  EngineOptions own = options;
  for (const SideConfig& config : configs) {
    own.config = options.config;
    if (!sides.empty() && !own.config.max_num_batched_tokens) {
      own.config.max_num_batched_tokens = sides.front().engine->report().max_num_batched_tokens;
    }
    if (config.set) config.set(own.config);
    OCTAVO_TRY(std::unique_ptr<Engine> engine, load_engine(own));
    sides.push_back({config.name, std::move(engine)});
  }
  return sides;
}

Result<SideRun> run_side(Engine& engine, const std::vector<Request>& requests,
                         std::optional<std::uint32_t> concurrency) {
  const EngineStats before = engine.stats();
  Gauges gauges;
  ListRun list(engine, requests);
  OCTAVO_TRY(const std::vector<Completion> done,
             list.run(concurrency.value_or(static_cast<std::uint32_t>(requests.size())), gauges));
  const EngineStats after = engine.stats();

  SideRun run;
  Micros start = Micros::max(), end{};
  for (const Completion& completion : done) start = std::min(start, completion.timings.scheduled);
  for (const Completion& completion : done) {
    const Timings& t = completion.timings;
    const Micros from = std::max(t.arrival, start);
    end = std::max(end, t.last_token);
    run.ttft_ms.push_back(millis(t.first_token - from));
    run.latency_ms.push_back(millis(t.last_token - from));
    const std::size_t tokens = completion.tokens.size();
    if (tokens > 1) run.tpot_ms.push_back(millis(t.last_token - t.first_token) / static_cast<double>(tokens - 1));
    run.prompt_tokens += completion.usage.prompt_tokens;
    run.cached_tokens += completion.usage.cached_tokens;
    run.output_tokens += tokens;
    run.hashes.push_back(XXH64(completion.tokens.data(), tokens * sizeof(TokenId), tokens));
  }
  run.seconds = std::max(std::chrono::duration<double>(end - start).count(), 1e-6);
  constexpr std::uint64_t kFirstTokens = 8, kFirstSteps = 1;  // of the one that is served first
  run.steps = after.steps - before.steps - kFirstSteps;
  run.computed_tokens = after.computed_tokens - before.computed_tokens - kFirstTokens;
  run.preemptions = after.preemptions - before.preemptions;
  run.preemptions_swap = after.preemptions_swap - before.preemptions_swap;
  run.moves = after.kv_moves - before.kv_moves;
  gauges.tell(run);
  return run;
}

Result<> same_output(const SideRun& run, const std::string& name, const SideRun& first, const std::string& first_name) {
  for (std::size_t i = 0; i < run.hashes.size(); ++i) {
    if (i < first.hashes.size() && run.hashes[i] == first.hashes[i]) continue;
    return Error{ErrorCode::kInternal,
                 fmt::format("request {}: '{}' gives other tokens than '{}' did", i, name, first_name), ""};
  }
  return Ok{};
}

Result<std::vector<std::vector<SideRun>>> run_in_turn(const std::vector<Side>& sides, std::uint32_t repeats,
                                                      const char* what, const RunSide& run) {
  ProgressBar bar(ProgressBar::Unit::kItems);
  for (const Side& side : sides) {
    OCTAVO_TRY(const SideRun ignored, run_side(*side.engine, {bench_request(side.engine->report().model, 1, 8, 4)}));
    static_cast<void>(ignored);
  }
  std::vector<std::vector<SideRun>> runs(sides.size());
  const std::uint64_t total = std::uint64_t{repeats} * sides.size();
  for (std::uint64_t i = 0; i < total; ++i) {
    const std::size_t repeat = i / sides.size(), turn = i % sides.size();
    const std::size_t at = repeat % 2 == 0 ? turn : sides.size() - 1 - turn;
    bar.update(fmt::format("{}, {}", what, sides[at].name), i, total);
    OCTAVO_TRY(SideRun done, run(sides[at]));
    if (i > 0) OCTAVO_CHECK_OK(same_output(done, sides[at].name, runs.front().front(), sides.front().name));
    runs[at].push_back(std::move(done));
  }
  return runs;
}

Request bench_request(const ModelInfo& model, std::uint64_t seed, std::uint32_t prompt_tokens,
                      std::uint32_t output_tokens) {
  Request out;
  std::uint64_t random = (seed + 1) * 0x9e3779b97f4a7c15ULL;
  for (std::uint32_t i = 0; i < prompt_tokens; ++i) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    out.prompt.push_back(TokenId{static_cast<std::int32_t>((random >> 33U) % model.vocab_size)});
  }
  out.params.max_tokens = output_tokens;
  out.params.temperature = 0;
  out.params.ignore_eos = true;
  return out;
}

std::vector<Request> bench_requests(const ModelInfo& model, const Workload& workload) {
  std::vector<Request> out;
  for (const PlannedRequest& planned : workload.requests) {
    out.push_back(bench_request(model, 100 + out.size(), planned.prompt_tokens, planned.output_tokens));
  }
  return out;
}

std::uint32_t longest(const Workload& workload) {
  std::uint32_t most = 0;
  for (const PlannedRequest& r : workload.requests) most = std::max(most, r.prompt_tokens + r.output_tokens);
  return most;
}

std::uint64_t pool_tokens(const Workload& workload, std::uint32_t block_tokens) {
  std::uint64_t tokens = 0;
  for (const PlannedRequest& r : workload.requests) tokens += r.prompt_tokens + r.output_tokens + block_tokens;
  return tokens;
}

Result<std::uint64_t> pool_bytes(const EngineOptions& options, std::uint64_t tokens) {
  OCTAVO_TRY(const std::string path, resolve_model(options.model));
  OCTAVO_TRY(const ModelInfo model, inspect_model(path, options.config.kv_type));
  const std::uint64_t block = options.config.block_tokens;
  return (tokens + block - 1) / block * block * model.kv_bytes_per_token;
}

Repeated fastest(const std::vector<SideRun>& runs, const std::function<double(const SideRun&)>& rate) {
  const std::vector<double> values = figures(runs, rate);
  return {*std::max_element(values.begin(), values.end()), median(values)};
}

Repeated shortest(const std::vector<SideRun>& runs, const std::function<double(const SideRun&)>& time) {
  const std::vector<double> values = figures(runs, time);
  return {*std::min_element(values.begin(), values.end()), median(values)};
}

Gain gain(const std::vector<SideRun>& one, const std::vector<SideRun>& other,
          const std::function<double(const SideRun&)>& figure) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < one.size(); ++i) ratios.push_back(figure(one[i]) / figure(other[i]));
  return {median(ratios), *std::min_element(ratios.begin(), ratios.end()),
          *std::max_element(ratios.begin(), ratios.end())};
}

std::string gain_text(const Gain& gain) {
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", gain.median, gain.least, gain.most);
}

Result<MachineShare> MachineShare::make(const EngineReport& report, const ProbeReport& peaks, Numerics numerics) {
  MachineShare share;
  OCTAVO_TRY(const ReadRate read, read_rate_at(report.step_weights_bytes, report.threads));
  share.ops_per_token_ = 2 * layer_macs(report.model);
  share.ops_per_output_ = 2.0 * report.model.width * report.model.vocab_size;
  share.ops_per_s_ = 1e9 * linear_peak(report.model, peaks, numerics).all;
  share.bytes_per_step_ = static_cast<double>(report.step_weights_bytes);
  share.bytes_per_s_ = 1e9 * read.best;
  return share;
}

double MachineShare::of(const SideRun& run) const {
  const double ops = ops_per_token_ * static_cast<double>(run.computed_tokens) +
                     ops_per_output_ * static_cast<double>(run.output_tokens);
  const double reading = bytes_per_step_ * static_cast<double>(run.steps) / bytes_per_s_;
  return std::max(ops / ops_per_s_, reading) / run.seconds;
}

double MachineShare::best(const std::vector<SideRun>& runs) const {
  double most = 0;
  for (const SideRun& run : runs) most = std::max(most, of(run));
  return most;
}

}  // namespace octavo
