// octavo trace: what a trace file says, in short; or the whole of it for a trace viewer.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/chrome_trace.h"
#include "cli/commands.h"
#include "cli/jsonl.h"
#include "cli/trace_file.h"

namespace octavo {
namespace {

struct TraceOptions {
  std::string file, chrome;
  bool json = false;
};

/// Of a list that may be sorted for it.
template <class T>
T quantile(std::vector<T>& values, double q) {
  if (values.empty()) return T{};
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

class Summary {
 public:
  void add(const TraceLine& line) {
    if (line.head) head_ = *line.head;
    if (line.step) step(*line.step);
    if (line.moment) moment(*line.moment);
    if (line.kv) ++kv_[*line.kv], kv_blocks_[*line.kv] += line.kv_blocks;
    if (line.lost) lost_ += *line.lost;
    closed_ = closed_ || line.end;
  }

  [[nodiscard]] Json json() {
    const auto quantiles = [](auto& values) {
      return Json{{"p50", quantile(values, .5)},
                  {"p90", quantile(values, .9)},
                  {"p99", quantile(values, .99)},
                  {"max", quantile(values, 1)}};
    };
    return {{"trace", head_},
            {"steps", steps_},
            {"seconds", seconds()},
            {"step_us", quantiles(durations_)},
            {"longest_step",
             {{"step", longest_.step},
              {"duration_us", longest_.duration_us},
              {"rows", longest_.rows},
              {"tokens", longest_.tokens}}},
            {"tokens", tokens_},
            {"prompt_tokens", prompt_tokens_},
            {"sampled_tokens", sampled_},
            {"budget_tokens", budget_},
            {"admitted", admitted_},
            {"resumed", resumed_},
            {"preempted_recompute", recomputed_},
            {"preempted_swap", swapped_},
            {"lost_tokens", lost_tokens_},
            {"lookup_tokens", lookups_},
            {"cached_tokens", cached_},
            {"forked_tokens", forked_},
            {"recovered_tokens", recovered_},
            {"blocks_used", quantiles(used_)},
            {"arrived", arrived_},
            {"finished", Json(finished_)},
            {"kv_events", Json(kv_)},
            {"kv_blocks", Json(kv_blocks_)},
            {"lost", lost_},
            {"closed", closed_}};
  }

  void print() {
    fmt::print("model         {}, {} KV blocks of {} tokens, {} sequences, budget {}\n", word("model"), word("blocks"),
               word("block_tokens"), word("max_num_seqs"), word("max_num_batched_tokens"));
    fmt::print("steps         {} in {:.1f} s; p50 {:.1f} ms, p90 {:.1f} ms, p99 {:.1f} ms\n", steps_, seconds(),
               1e-3 * static_cast<double>(quantile(durations_, .5)),
               1e-3 * static_cast<double>(quantile(durations_, .9)),
               1e-3 * static_cast<double>(quantile(durations_, .99)));
    fmt::print("longest       step {}: {:.1f} ms, {} rows, {} tokens\n", longest_.step,
               1e-3 * static_cast<double>(longest_.duration_us), longest_.rows, longest_.tokens);
    fmt::print("tokens        {} computed, {} of them prompt; {} sampled\n", tokens_, prompt_tokens_, sampled_);
    fmt::print("budget        {:.1f} % used\n", percent(static_cast<double>(tokens_), static_cast<double>(budget_)));
    fmt::print("requests      {} arrived; choices ended:{}\n", arrived_, list(finished_));
    fmt::print("admissions    {}, {} of them resumed\n", admitted_, resumed_);
    fmt::print("preemptions   {}: {} to recompute, {} swapped; {} tokens lost, {} recovered\n", recomputed_ + swapped_,
               recomputed_, swapped_, lost_tokens_, recovered_);
    fmt::print("prefix cache  {} prompt tokens looked up, {} found ({:.1f} %); {} more shared by choices\n", lookups_,
               cached_, percent(static_cast<double>(cached_), static_cast<double>(lookups_)), forked_);
    fmt::print("blocks used   p50 {}, p90 {}, p99 {}, most {} of {}\n", quantile(used_, .5), quantile(used_, .9),
               quantile(used_, .99), quantile(used_, 1), word("blocks"));
    if (!kv_blocks_.empty()) fmt::print("KV blocks    {}\n", list(kv_blocks_));
    if (lost_ > 0) fmt::print("lost          {} records: what is told here is less than what happened\n", lost_);
    if (!closed_) fmt::print("The trace has no last line: it is still being written, or was cut off.\n");
  }

 private:
  void step(const StepRecord& r) {
    ++steps_;
    first_us_ = steps_ == 1 ? r.begin_us : std::min(first_us_, r.begin_us);
    last_us_ = std::max(last_us_, r.begin_us + r.duration_us);
    if (steps_ == 1 || r.duration_us > longest_.duration_us) longest_ = r;
    durations_.push_back(r.duration_us), used_.push_back(r.blocks_used);
    tokens_ += r.tokens, prompt_tokens_ += r.prompt_tokens, sampled_ += r.sampled_tokens;
    if (r.rows > 0) budget_ += r.budget;
    admitted_ += r.admitted, resumed_ += r.resumed;
    recomputed_ += r.preempted_recompute, swapped_ += r.preempted_swap, lost_tokens_ += r.lost_tokens;
    lookups_ += r.lookup_tokens, cached_ += r.cached_tokens, forked_ += r.forked_tokens,
        recovered_ += r.recovered_tokens;
  }

  void moment(const TracedMoment& m) {
    if (m.event == "arrived") ++arrived_;
    if (m.event == "finished") ++finished_[m.reason];
  }

  [[nodiscard]] double seconds() const { return 1e-6 * static_cast<double>(last_us_ - first_us_); }

  [[nodiscard]] std::string word(const char* name) const {
    const auto at = head_.find(name);
    if (at == head_.end()) return "?";
    return at->is_string() ? at->get<std::string>() : dump(*at);
  }

  static std::string list(const std::map<std::string, std::uint64_t>& counts) {
    std::string out;
    for (const auto& [name, count] : counts) out += fmt::format("{} {} {}", out.empty() ? "" : ",", count, name);
    return out.empty() ? " none" : out;
  }

  Json head_;
  std::uint64_t steps_ = 0, tokens_ = 0, prompt_tokens_ = 0, sampled_ = 0, budget_ = 0, admitted_ = 0, resumed_ = 0,
                recomputed_ = 0, swapped_ = 0, lost_tokens_ = 0, lookups_ = 0, cached_ = 0, forked_ = 0, recovered_ = 0,
                arrived_ = 0, lost_ = 0;
  std::int64_t first_us_ = 0, last_us_ = 0;
  StepRecord longest_;
  std::vector<std::int64_t> durations_;
  std::vector<std::uint32_t> used_;
  std::map<std::string, std::uint64_t> finished_, kv_, kv_blocks_;
  bool closed_ = false;
};

Result<> check_input(const TraceOptions& options) {
  const auto no = [&](const char* why) { return Error{ErrorCode::kNotFound, options.file + ": " + why, "FILE"}; };
  std::error_code ignored;
  if (!std::filesystem::exists(options.file, ignored)) return no("there is no such file");
  if (std::filesystem::is_directory(options.file, ignored)) return no("this is a folder, not a trace");
  if (std::filesystem::equivalent(options.file, options.chrome, ignored)) {
    return Error{ErrorCode::kInvalidArgument, "--chrome " + options.chrome + " is the trace itself: name another file",
                 "--chrome"};
  }
  return Ok{};
}

Result<> trace(const TraceOptions& options) {
  OCTAVO_CHECK_OK(check_input(options));
  std::ifstream in(options.file);
  if (!in) return Error{ErrorCode::kNotFound, options.file + ": cannot be read", "FILE"};
  Summary summary;
  std::ofstream out;
  std::unique_ptr<ChromeTrace> chrome;
  if (!options.chrome.empty()) {
    out.open(options.chrome, std::ios::trunc);
    if (!out) return Error{ErrorCode::kIo, "--chrome " + options.chrome + ": cannot write there", "--chrome"};
    chrome = std::make_unique<ChromeTrace>(out);
  }
  const auto read = read_trace(in, options.file, [&](const TraceLine& line) {
    summary.add(line);
    if (chrome) chrome->add(line);
  });
  if (chrome) {  // what was read before a fault is whole, too
    chrome->finish();
    out.close();
    if (!out) return Error{ErrorCode::kIo, "--chrome " + options.chrome + ": cannot write all of it", "--chrome"};
  }
  OCTAVO_CHECK_OK(read);
  if (options.json)
    std::cout << dump(summary.json()) << '\n';
  else
    summary.print();
  return Ok{};
}

}  // namespace

Command trace_command(CLI::App& program) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* app = program.add_subcommand("trace", "Sum up a file of --trace, or convert it for a trace viewer");
  app->add_option("FILE", options->file, "what --trace FILE wrote")->required()->type_name("");
  app->add_option("--chrome", options->chrome, "also write it for Perfetto and chrome://tracing");
  app->add_flag("--json", options->json, "print JSON");
  return {app, [options] { return trace(*options); }};
}

}  // namespace octavo
