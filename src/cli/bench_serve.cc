// octavo bench serve: a load on any server of the OpenAI API, and what its users would have felt.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "cli/arrival_options.h"
#include "cli/commands.h"
#include "cli/jsonl.h"
#include "cli/load_client.h"
#include "cli/load_prompts.h"
#include "cli/load_report.h"
#include "cli/progress.h"
#include "cli/validators.h"

namespace octavo {
namespace {

constexpr double kNotableLateMs = 20;
constexpr std::size_t kToldErrors = 5;

struct BenchServeOptions {
  Endpoint endpoint;
  ArrivalOptions load;
  std::string model, goal, save;
  std::uint32_t vocab = 1000, timeout_s = 600;
  bool text = false, ignore_eos = false, json = false;
};

std::string request_body(const BenchServeOptions& options, const PlannedRequest& request, const LoadPrompts& prompts,
                         std::size_t index) {
  Json body = {{"model", options.model},
               {"max_tokens", request.output_tokens},
               {"temperature", 0},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}}};
  if (options.ignore_eos) body["ignore_eos"] = true;
  if (options.text) {
    body["prompt"] = prompts.text(index);
  } else {
    body["prompt"] = prompts.ids(index);
    body["return_token_ids"] = true;  // a token whose text is not complete yet is an event, too
  }
  return dump(body);
}

Json asked(const BenchServeOptions& options, const Workload& workload) {
  const Arrivals& arrivals = options.load.arrivals;
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json rate = or_null(arrivals.rate);
  if (arrivals.rate && std::isinf(*arrivals.rate)) rate = "inf";
  return {{"backend", "openai"},
          {"base_url", options.endpoint.url},
          {"model_id", options.model},
          {"workload", workload.name},
          {"num_prompts", workload.requests.size()},
          {"request_rate", rate},
          {"burstiness", or_null(arrivals.burstiness)},
          {"max_concurrency", or_null(arrivals.concurrency)},
          {"seed", arrivals.seed},
          {"goal", options.goal.empty() ? Json(nullptr) : Json(options.goal)}};
}

/// What would spoil the figures unnoticed.
void warn(const LoadReport& report, bool ignore_eos) {
  std::vector<std::pair<std::uint64_t, std::string>> errors;  // most frequent first
  for (const auto& [message, count] : report.errors) errors.emplace_back(count, message);
  std::ranges::stable_sort(errors, std::greater{}, &std::pair<std::uint64_t, std::string>::first);
  for (std::size_t i = 0; i < std::min(errors.size(), kToldErrors); ++i) {
    fmt::print(stderr, "octavo bench serve: {} requests failed: {}\n", errors[i].first, errors[i].second);
  }
  if (errors.size() > kToldErrors) {
    fmt::print(stderr, "octavo bench serve: and {} other messages (--json has them all)\n",
               errors.size() - kToldErrors);
  }
  if (report.max_late_ms > kNotableLateMs) {
    fmt::print(stderr, "octavo bench serve: requests went out up to {:.0f} ms late: this machine is too busy to send\n",
               report.max_late_ms);
  }
  if (report.short_outputs > 0) {
    fmt::print(stderr, "octavo bench serve: {} answers are shorter than asked for{}\n", report.short_outputs,
               ignore_eos ? "" : " (--ignore-eos)");
  }
}

Result<> bench_serve(BenchServeOptions& options) {
  OCTAVO_TRY(const Workload workload, make_workload(options.load.workload, options.load.asked()));
  OCTAVO_TRY(const ServiceGoal goal, parse_goal(options.goal));
  options.endpoint.stall = std::chrono::seconds(options.timeout_s);
  OCTAVO_CHECK_OK(url_of(options.endpoint, ""));
  std::ofstream save;
  if (!options.save.empty()) {
    save.open(options.save);
    if (!save) return Error{ErrorCode::kIo, fmt::format("--save: cannot write {}", options.save), "--save"};
  }
  if (options.model.empty()) {
    OCTAVO_TRY(options.model, first_model(options.endpoint));
  }

  const LoadPrompts prompts(workload, options.load.arrivals.seed, options.vocab);
  const auto body = [&](std::size_t i) { return request_body(options, workload.requests[i], prompts, i); };
  LoadRun run;
  {
    ProgressBar progress(ProgressBar::Unit::kItems);
    const auto told = [&](std::size_t ended) { progress.update("requests", ended, workload.requests.size()); };
    OCTAVO_TRY(run, run_load(options.endpoint, workload, body, told));
  }
  const LoadReport report = sum_up(run, workload, goal);
  const bool has_goal = !options.goal.empty();
  Json json = asked(options, workload);
  json.update(to_json(report, has_goal));
  if (options.json) {
    std::cout << dump(json) << std::endl;
  } else if (report.completed > 0) {
    fmt::print("{} at {}: {}\n", options.model, options.endpoint.url, workload.name);
    print(report, has_goal);
  }
  warn(report, options.ignore_eos);
  if (save.is_open()) {
    add_details(json, run, workload);
    save << dump(json) << std::endl;
    if (!save) return Error{ErrorCode::kIo, fmt::format("--save: cannot write {}", options.save), "--save"};
  }
  if (report.completed == 0) return Error{ErrorCode::kUnavailable, "no request was answered", ""};
  return Ok{};
}

}  // namespace

Command bench_serve_command(CLI::App& bench) {
  auto options = std::make_shared<BenchServeOptions>();
  options->load.workload = "sharegpt";
  options->endpoint.url = "http://127.0.0.1:8080";
  options->endpoint.api_key = environment("OPENAI_API_KEY");
  CLI::App* app = bench.add_subcommand("serve", "Put a load on a server of the OpenAI API and time its answers");
  app->add_option("--url", options->endpoint.url, "of the server, with or without /v1")->capture_default_str();
  app->add_option("--model", options->model, "its name there (default: the first that the server lists)");
  app->add_option("--api-key", options->endpoint.api_key, "default: $OPENAI_API_KEY");
  app->add_option("--workload", options->load.workload,
                  "a trace's file, a profile, or prompt:...;output:... (docs/workloads.md)")
      ->capture_default_str();
  add_arrival_options(*app, options->load);
  app->add_option("--goal", options->goal, "what a request must keep to be good: ttft=MS,tpot=MS,e2e=MS");
  app->add_option("--vocab", options->vocab, "prompts are of token ids below this")
      ->check(whole_number(10, 1U << 24U))
      ->capture_default_str();
  app->add_flag("--text", options->text, "prompts are of common words, for servers that take no ids");
  app->add_flag("--ignore-eos", options->ignore_eos, "ask for answers of just the wanted length");
  app->add_option("--timeout", options->timeout_s, "seconds without a byte, after which a request has failed")
      ->check(whole_number(1, 86'400))
      ->capture_default_str();
  app->add_option("--save", options->save, "write the figures there, and those of each request");
  app->add_flag("--json", options->json, "print JSON");
  return {app, [options] { return bench_serve(*options); }};
}

}  // namespace octavo
