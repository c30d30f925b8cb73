#include "cli/plan_check.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/resident.h"
#include "cli/load_prompts.h"
#include "cli/progress.h"
#include "octavo/trace.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::microseconds;

constexpr double kLevels[] = {0.5, 0.8, 1.5};  // of the predicted capacity
constexpr std::uint32_t kRequests = 40;        // where nothing else is asked
constexpr std::uint64_t kRssAllowance = 16ULL << 20U;
constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::milliseconds kLook{100};  // between two looks at the engine

double millis(Micros time) { return std::chrono::duration<double, std::milli>(time).count(); }

Spectrum spectrum_of(std::vector<double> values) {
  Spectrum out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1];
  };
  out.count = values.size();
  for (const double v : values) out.mean += v / static_cast<double>(values.size());
  out.p50 = at(.5), out.p90 = at(.9), out.p95 = at(.95), out.p99 = at(.99), out.max = values.back();
  for (int percent = 0; percent <= 100; ++percent) out.percentiles.push_back(at(std::max(percent / 100.0, 1e-9)));
  return out;
}

/// The pool is made resident in the background; on a busy machine that may take its time.
void wait_until_resident(std::uint64_t bytes) {
  const auto begin = Clock::now();
  while (resident_bytes() < bytes && Clock::now() - begin < kPatience) std::this_thread::sleep_for(kLook);
}

/// What one request's sink sees; the engine's thread writes, whoever waited for `open` to become 0 reads.
struct Seen {
  Timings timings;
  std::uint32_t tokens = 0;
  bool failed = false;
  std::vector<double> gaps_ms;
};

/// Peaks of memory while a load runs.
class MemoryWatch {
 public:
  explicit MemoryWatch(const Engine& engine)
      : engine_(engine), page_bytes_(engine.report().kv_bytes / (engine.report().num_blocks + std::uint64_t{1})) {
    const auto last = engine.recent_steps(1);
    if (!last.empty()) last_step_ = last.back().record.step;
    thread_ = std::thread([this] { watch(); });
  }
  ~MemoryWatch() { stop(); }
  void stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::uint64_t kv_peak_bytes() const { return blocks_ * page_bytes_; }
  [[nodiscard]] std::uint64_t rss_peak_bytes() const { return rss_; }

 private:
  void watch() {
    while (true) {
      const bool last = over_;
      rss_ = std::max(rss_, resident_bytes());
      for (const RecentStep& step : engine_.recent_steps(1024)) {
        if (step.record.step <= last_step_) continue;
        last_step_ = step.record.step;
        blocks_ = std::max<std::uint64_t>(blocks_, step.record.blocks_used);
      }
      if (last) return;
      std::this_thread::sleep_for(kLook);
    }
  }
  const Engine& engine_;
  std::uint64_t page_bytes_, last_step_ = 0, blocks_ = 0, rss_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

std::vector<CheckedFigure> compare(const SimulateReport& p, const MeasuredLoad& m, std::uint64_t planned_rss) {
  const auto bytes = [](std::uint64_t n) { return static_cast<double>(n); };
  return {{"KV peak, bytes", p.kv_reserved_bytes.max, bytes(m.kv_peak_bytes), .02, 0},
          {"RSS peak, bytes", bytes(planned_rss), bytes(m.rss_peak_bytes), .02, bytes(kRssAllowance)},
          {"output tok/s", p.output_tokens_per_s, m.output_tokens_per_s, .10, 0},
          {"TTFT mean, ms", p.ttft_ms.mean, m.ttft_ms.mean, .10, 0},
          {"TTFT p99, ms", p.ttft_ms.p99, m.ttft_ms.p99, .20, 0},
          {"TPOT mean, ms", p.tpot_ms.mean, m.tpot_ms.mean, .10, 0},
          {"TPOT p99, ms", p.tpot_ms.p99, m.tpot_ms.p99, .20, 0},
          {"ITL mean, ms", p.itl_ms.mean, m.itl_ms.mean, .10, 0},
          {"E2E mean, ms", p.e2e_ms.mean, m.e2e_ms.mean, .10, 0}};
}

/// The profile must have been there before.
Result<> check_age(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) == 0 && file.st_mtim.tv_sec <= std::time(nullptr)) return Ok{};
  return Error{ErrorCode::kInvalidArgument, path + ": this machine profile is from the future: measure it again",
               "machine"};
}

}  // namespace

bool CheckedFigure::kept() const { return std::abs(error()) <= bound || std::abs(predicted - measured) <= allowance; }

Result<MeasuredLoad> run_load(Engine& engine, const Workload& workload, std::uint64_t seed) {
  const std::size_t count = workload.requests.size();
  const LoadPrompts prompts(workload, seed, engine.report().model.vocab_size);
  std::vector<Request> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::uint32_t id : prompts.ids(i)) requests[i].prompt.push_back({static_cast<std::int32_t>(id)});
    requests[i].params.max_tokens = workload.requests[i].output_tokens;
    requests[i].params.temperature = 0;
    requests[i].params.ignore_eos = true;
  }
  std::vector<Seen> seen(count);
  for (std::size_t i = 0; i < count; ++i) seen[i].gaps_ms.reserve(workload.requests[i].output_tokens);
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t open = 0, done = 0;

  MeasuredLoad out;
  MemoryWatch memory(engine);
  ProgressBar progress(ProgressBar::Unit::kItems);
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    {
      std::unique_lock lock(mutex);
      if (workload.concurrency) {
        ended.wait(lock, [&] { return open < *workload.concurrency; });
      } else {
        const auto arrival = begin + workload.requests[i].arrival - workload.requests.front().arrival;
        while (ended.wait_until(lock, arrival) != std::cv_status::timeout) {
        }
      }
      ++open;
      progress.update("requests", done, count);
    }
    auto id = engine.submit(std::move(requests[i]), [&, i](OutputEvent&& event) {
      Seen& s = seen[i];
      const Micros before = s.timings.last_token;
      s.timings = event.timings;
      if (s.tokens > 0 && !event.tokens.empty()) s.gaps_ms.push_back(millis(event.timings.last_token - before));
      s.tokens += static_cast<std::uint32_t>(event.tokens.size());
      s.failed = s.failed || event.error.has_value();
      if (!event.last) return;
      const std::lock_guard lock(mutex);
      --open, ++done;
      ended.notify_all();
    });
    if (id) continue;
    const std::lock_guard lock(mutex);
    --open;
    seen[i].failed = true;
  }
  {
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return open == 0; });
  }
  memory.stop();

  std::vector<double> ttft, tpot, itl, e2e;
  Micros first = Micros::max(), last{};
  std::uint64_t tokens = 0;
  for (const Seen& s : seen) {
    if (s.failed || s.tokens == 0) {
      ++out.refused;
      continue;
    }
    ++out.answered;
    tokens += s.tokens;
    first = std::min(first, s.timings.arrival), last = std::max(last, s.timings.last_token);
    ttft.push_back(millis(s.timings.first_token - s.timings.arrival));
    e2e.push_back(millis(s.timings.last_token - s.timings.arrival));
    if (s.tokens > 1) tpot.push_back(millis(s.timings.last_token - s.timings.first_token) / (s.tokens - 1));
    itl.insert(itl.end(), s.gaps_ms.begin(), s.gaps_ms.end());
  }
  if (out.answered == 0) return Error{ErrorCode::kExhausted, "no request of the load could be answered", "workload"};
  out.seconds = millis(last - first) / 1e3;
  out.output_tokens_per_s = static_cast<double>(tokens) / std::max(out.seconds, 1e-9);
  out.ttft_ms = spectrum_of(std::move(ttft)), out.tpot_ms = spectrum_of(std::move(tpot));
  out.itl_ms = spectrum_of(std::move(itl)), out.e2e_ms = spectrum_of(std::move(e2e));
  out.kv_peak_bytes = memory.kv_peak_bytes();
  out.rss_peak_bytes = memory.rss_peak_bytes();
  return out;
}

Result<CheckReport> check_plan(const ModelShape& model, const EngineOptions& engine, std::uint64_t memory,
                               std::uint64_t planned_rss, const LoadOptions& asked) {
  LoadOptions options = asked;
  if (!options.arrivals.requests && options.duration_s == 0) options.arrivals.requests = kRequests;
  if (options.arrivals.concurrency) {
    return Error{ErrorCode::kInvalidArgument, "--check takes rates of arrivals: leave out --concurrency",
                 "--concurrency"};
  }
  CheckReport report;
  // The prediction, before anything runs.
  options.arrivals.rate = std::numeric_limits<double>::infinity();
  OCTAVO_TRY(const LoadPlan at_once, plan_load(model, engine.config, memory, options));
  OCTAVO_CHECK_OK(check_age(at_once.machine_file));
  report.machine_hash = profile_hash(at_once.machine);
  report.measured_at = at_once.machine.measured;
  report.steps_measured = at_once.costing.measured;
  report.capacity = at_once.report.requests_per_s;
  std::vector<Workload> workloads;
  for (const double level : kLevels) {
    const double rate = asked.arrivals.rate ? *asked.arrivals.rate * level / kLevels[0] : level * report.capacity;
    options.arrivals.rate = rate;
    OCTAVO_TRY(LoadPlan plan, plan_load(model, engine.config, memory, options));
    report.levels.push_back({fmt::format("{:.2g} of capacity", rate / report.capacity), rate, plan.report, {}, {}});
    workloads.push_back(std::move(plan.workload));
  }
  EngineOptions as_served = engine;
  as_served.config.prefault_kv = true;  // as the server does: what is planned is to be seen
  OCTAVO_TRY(const std::unique_ptr<Engine> loaded, load_engine(as_served));
  wait_until_resident(loaded->report().kv_bytes);
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    CheckedLevel& level = report.levels[i];
    fmt::print(stderr, "octavo plan: running {} requests at {:.3g}/s ({})\n", workloads[i].requests.size(), level.rate,
               level.name);
    OCTAVO_TRY(level.measured, run_load(*loaded, workloads[i], options.arrivals.seed));
    level.figures = compare(level.predicted, level.measured, planned_rss);
    if (auto reset = loaded->reset_prefix_cache(); !reset) return std::move(reset).error();
  }
  return report;
}

void print_check(const CheckReport& report) {
  fmt::print("\npredicted by profile {} of {}, steps {}\n", report.machine_hash, report.measured_at,
             report.steps_measured ? "measured on this model" : "composed from single kernels");
  fmt::print("capacity   {:.3g} requests/s, by prediction\n", report.capacity);
  std::size_t kept = 0, all = 0;
  for (const CheckedLevel& level : report.levels) {
    fmt::print("\n{:<20}{:>14}{:>14}{:>9}{:>9}\n", fmt::format("{:.3g}/s, {}", level.rate, level.name), "predicted",
               "measured", "error", "bound");
    for (const CheckedFigure& f : level.figures) {
      fmt::print("  {:<18}{:>14.6g}{:>14.6g}{:>7.1f} %{:>7.0f} %{}\n", f.name, f.predicted, f.measured, 100 * f.error(),
                 100 * f.bound, f.kept() ? "" : "   MISSED");
      kept += f.kept() ? 1 : 0, ++all;
    }
    if (level.measured.refused > 0) fmt::print("  {} requests were refused or failed\n", level.measured.refused);
  }
  fmt::print("\n{} of {} figures are within their bounds\n", kept, all);
}

Json to_json(const CheckReport& report) {
  Json levels = Json::array();
  for (const CheckedLevel& level : report.levels) {
    Json figures = Json::array();
    for (const CheckedFigure& f : level.figures) {
      figures.push_back({{"name", f.name},
                         {"predicted", f.predicted},
                         {"measured", f.measured},
                         {"error", f.error()},
                         {"bound", f.bound},
                         {"kept", f.kept()}});
    }
    levels.push_back({{"name", level.name},
                      {"requests_per_s", level.rate},
                      {"answered", level.measured.answered},
                      {"refused", level.measured.refused},
                      {"figures", figures}});
  }
  return {{"machine_hash", report.machine_hash},
          {"machine_measured", report.measured_at},
          {"steps_measured_on_model", report.steps_measured},
          {"capacity_requests_per_s", report.capacity},
          {"levels", levels}};
}

}  // namespace octavo
