#include "cli/load_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/statistics.h"

namespace octavo {
namespace {

std::optional<double> tpot_of(const TimedAnswer& timed) {
  const StreamedAnswer& answer = timed.answer;
  if (answer.output_tokens < 2) return std::nullopt;
  return (answer.last_ms - *answer.first_ms) / static_cast<double>(answer.output_tokens - 1);
}

bool keeps(double ms, const std::optional<std::chrono::milliseconds>& limit) {
  return !limit || ms <= static_cast<double>(limit->count());
}

std::uint64_t input_tokens(const TimedAnswer& timed, const PlannedRequest& asked) {
  return timed.answer.prompt_tokens > 0 ? timed.answer.prompt_tokens : asked.prompt_tokens;
}

}  // namespace

Figure figure_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  Figure figure;
  figure.mean = mean(values);
  for (const double value : values) figure.deviation += (value - figure.mean) * (value - figure.mean) / count;
  figure.deviation = std::sqrt(figure.deviation);
  figure.median = quantile(values, .5), figure.p90 = quantile(values, .9), figure.p99 = quantile(values, .99);
  return figure;
}

LoadReport sum_up(const LoadRun& run, const Workload& workload, const ServiceGoal& goal) {
  LoadReport report;
  report.seconds = run.seconds;
  std::vector<double> ttfts, tpots, itls, e2els;
  for (std::size_t i = 0; i < run.answers.size(); ++i) {
    const TimedAnswer& timed = run.answers[i];
    const StreamedAnswer& answer = timed.answer;
    report.max_late_ms = std::max(report.max_late_ms, timed.late_ms);
    if (!answer.error.empty()) {
      ++report.failed, ++report.errors[answer.error];
      continue;
    }
    ++report.completed;
    report.input_tokens += input_tokens(timed, workload.requests[i]);
    report.output_tokens += answer.output_tokens;
    report.short_outputs += answer.output_tokens < workload.requests[i].output_tokens ? 1 : 0;
    ttfts.push_back(*answer.first_ms);
    e2els.push_back(answer.last_ms);
    itls.insert(itls.end(), answer.gaps_ms.begin(), answer.gaps_ms.end());
    const auto tpot = tpot_of(timed);
    if (tpot) tpots.push_back(*tpot);
    const bool good =
        keeps(*answer.first_ms, goal.ttft) && keeps(tpot.value_or(0), goal.tpot) && keeps(answer.last_ms, goal.e2e);
    report.good += good ? 1 : 0;
  }
  report.ttft = figure_of(ttfts), report.tpot = figure_of(tpots);
  report.itl = figure_of(itls), report.e2el = figure_of(e2els);
  return report;
}

Json to_json(const LoadReport& r, bool has_goal) {
  Json json = {{"duration", r.seconds},
               {"completed", r.completed},
               {"failed", r.failed},
               {"total_input_tokens", r.input_tokens},
               {"total_output_tokens", r.output_tokens},
               {"request_throughput", r.per_second(r.completed)},
               {"request_goodput", has_goal ? Json(r.per_second(r.good)) : Json(nullptr)},
               {"output_throughput", r.per_second(r.output_tokens)},
               {"total_token_throughput", r.per_second(r.input_tokens + r.output_tokens)}};
  for (const auto& [name, figure] :
       {std::pair{"ttft", &r.ttft}, {"tpot", &r.tpot}, {"itl", &r.itl}, {"e2el", &r.e2el}}) {
    json[fmt::format("mean_{}_ms", name)] = figure->mean;
    json[fmt::format("median_{}_ms", name)] = figure->median;
    json[fmt::format("std_{}_ms", name)] = figure->deviation;
    json[fmt::format("p90_{}_ms", name)] = figure->p90;
    json[fmt::format("p99_{}_ms", name)] = figure->p99;
  }
  json["short_outputs"] = r.short_outputs;
  json["max_late_ms"] = r.max_late_ms;
  json["error_counts"] = Json::object();
  for (const auto& [message, count] : r.errors) json["error_counts"][message] = count;
  return json;
}

void add_details(Json& json, const LoadRun& run, const Workload& workload) {
  constexpr double kMs = 1000;
  for (const char* name : {"input_lens", "output_lens", "ttfts", "itls", "e2els", "start_times", "errors"}) {
    json[name] = Json::array();
  }
  for (std::size_t i = 0; i < run.answers.size(); ++i) {
    const TimedAnswer& timed = run.answers[i];
    const StreamedAnswer& answer = timed.answer;
    json["input_lens"].push_back(input_tokens(timed, workload.requests[i]));
    json["output_lens"].push_back(answer.error.empty() ? answer.output_tokens : 0);
    json["ttfts"].push_back(answer.first_ms.value_or(0) / kMs);
    Json gaps = Json::array();
    for (const double gap : answer.gaps_ms) gaps.push_back(gap / kMs);
    json["itls"].push_back(std::move(gaps));
    json["e2els"].push_back(answer.last_ms / kMs);
    json["start_times"].push_back(timed.sent_ms / kMs);
    json["errors"].push_back(answer.error);
  }
}

void print(const LoadReport& r, bool has_goal) {
  fmt::print("{} of {} requests answered in {:.2f} s, {} failed\n", r.completed, r.completed + r.failed, r.seconds,
             r.failed);
  fmt::print("{} input tokens, {} output tokens\n\n", r.input_tokens, r.output_tokens);
  fmt::print("{:<22}{:>12.3f}\n", "requests/s", r.per_second(r.completed));
  if (has_goal) {
    fmt::print("{:<22}{:>12.3f}   {:.1f} % of all kept the goal\n", "goodput, requests/s", r.per_second(r.good),
               100.0 * static_cast<double>(r.good) / static_cast<double>(r.completed + r.failed));
  }
  fmt::print("{:<22}{:>12.2f}\n{:<22}{:>12.2f}\n\n", "output tok/s", r.per_second(r.output_tokens), "total tok/s",
             r.per_second(r.input_tokens + r.output_tokens));
  fmt::print("{:<22}{:>12}{:>12}{:>12}{:>12}\n", "ms", "mean", "median", "p90", "p99");
  for (const auto& [name, figure] :
       {std::pair{"TTFT", &r.ttft}, {"TPOT", &r.tpot}, {"ITL", &r.itl}, {"E2EL", &r.e2el}}) {
    fmt::print("{:<22}{:>12.2f}{:>12.2f}{:>12.2f}{:>12.2f}\n", name, figure->mean, figure->median, figure->p90,
               figure->p99);
  }
}

}  // namespace octavo
