#include "cli/plan_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/format.h"

namespace octavo {
namespace {

constexpr std::uint64_t kPrefixSizes[] = {100, 1'000, 10'000, 100'000};  // of the workload's own blocks

double percent(double share) { return 100 * share; }

/// Its own parts of the workload name the same prefix only where prompts share them.
bool shares_prefixes(const Workload& workload) {
  return std::ranges::any_of(workload.requests, [](const PlannedRequest& r) { return !r.prefix_ids.empty(); });
}

void print_spectrum(const char* name, const Spectrum& s, double unit, int digits) {
  fmt::print("  {:<18}", name);
  for (const double v : {s.mean, s.p50, s.p90, s.p95, s.p99, s.max}) fmt::print("{:>12.{}f}", v / unit, digits);
  fmt::print("\n");
}

void print_what_if(const std::vector<WhatIf>& rows) {
  fmt::print("\n{:<20}{:>10}{:>11}{:>11}{:>9}{:>9}{:>10}{:>9}  {}\n", "what if", "out tok/s", "TTFT p99", "TPOT p99",
             "running", "waste", "preempted", "good", "limit");
  for (const WhatIf& row : rows) {
    if (!row.report) {
      fmt::print("{:<20}  {}\n", row.change, row.why_not);
      continue;
    }
    const SimulateReport& r = *row.report;
    fmt::print("{:<20}{:>10.1f}{:>8.0f} ms{:>8.1f} ms{:>9.1f}{:>7.1f} %{:>8.1f} %{:>7.1f} %  {}\n", row.change,
               r.output_tokens_per_s, r.ttft_ms.p99, r.tpot_ms.p99, r.running.mean, percent(r.internal_waste),
               percent(r.preempted_share), percent(r.good_share), r.limit);
  }
}

Json to_json(const Spectrum& s) {
  return {{"mean", s.mean}, {"p50", s.p50}, {"p90", s.p90}, {"p95", s.p95}, {"p99", s.p99}, {"max", s.max}};
}

std::string goal_text(const ServiceGoal& goal) {
  std::string out;
  for (const auto& [name, limit] : {std::pair{"TTFT", goal.ttft}, {"TPOT", goal.tpot}, {"E2E", goal.e2e}}) {
    if (limit) out += fmt::format("{}{} <= {} ms", out.empty() ? "" : ", ", name, limit->count());
  }
  return out;
}

}  // namespace

void add_load_options(CLI::App& app, LoadOptions& options) {
  app.add_option("--workload", options.workload,
                 "requests to plan for: a trace (CSV, JSONL), a profile's name, or a distribution like "
                 "prompt:p50=1020,p99=4142;output:128 (docs/workloads.md)");
  add_arrival_options(app, options);
  app.add_option("--goal", options.goal, "what a request must keep to be good: ttft=MS,tpot=MS,e2e=MS");
  app.add_option("--machine", options.machine,
                 "profile of the machine to plan for, by octavo probe --save (default: this machine's)");
  app.add_flag("--search-rate", options.search, "find the largest rate at which 99 % of requests keep the goal");
  app.add_flag("--what-if", options.what_if, "the same load under other KV types, blocks, memory, batching, policy");
}

Result<LoadPlan> plan_load(const ModelShape& model, const EngineConfig& engine, std::uint64_t memory,
                           const LoadOptions& options) {
  LoadPlan plan;
  OCTAVO_TRY(plan.goal, parse_goal(options.goal));
  const Arrivals arrivals = options.asked();
  plan.machine_file = options.machine.empty() ? profile_path(engine.threads) : options.machine;
  if (plan.machine_file.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "there is no cache folder to find this machine's profile in: name one with --machine", "--machine"};
  }
  OCTAVO_TRY(plan.machine, load_profile(plan.machine_file));
  OCTAVO_TRY(plan.costing, step_curve(plan.machine, model, engine));
  OCTAVO_TRY(plan.workload, make_workload(options.workload, arrivals));
  const SimulateConfig config{engine, memory, plan.costing.curve, plan.goal};
  OCTAVO_TRY(plan.report, simulate(model, config, plan.workload));
  if (options.what_if) plan.what_if = what_if(model, config, plan.workload);
  if (options.search) {
    OCTAVO_TRY(plan.search, largest_rate(model, config, options.workload, arrivals));
  }
  if (shares_prefixes(plan.workload)) {
    for (const std::uint64_t blocks : kPrefixSizes) {
      plan.prefix_hits.push_back({blocks, prefix_hit_share(plan.workload, blocks)});
    }
    plan.prefix_hits.push_back({0, prefix_hit_share(plan.workload, std::nullopt)});
  }
  return plan;
}

void print_load(const LoadPlan& plan) {
  const SimulateReport& r = plan.report;
  fmt::print("\nload       {}\n", plan.workload.name);
  fmt::print("machine    {}, {}, {} threads; profile {} of {}\n", plan.machine.cpu, plan.machine.isa,
             plan.machine.threads, profile_hash(plan.machine), plan.machine.measured);
  fmt::print("steps      {}\n\n", plan.costing.measured ? "measured on this model"
                                                        : "composed from single kernels (octavo probe --save --model "
                                                          "measures the model itself)");
  fmt::print("  {:<18}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}\n", "", "mean", "p50", "p90", "p95", "p99", "max");
  print_spectrum("TTFT, ms", r.ttft_ms, 1, 1);
  print_spectrum("TPOT, ms", r.tpot_ms, 1, 2);
  print_spectrum("ITL, ms", r.itl_ms, 1, 2);
  print_spectrum("E2E, s", r.e2e_ms, 1e3, 2);
  print_spectrum("queueing, ms", r.queue_ms, 1, 1);
  print_spectrum("running", r.running, 1, 1);
  print_spectrum("live tokens", r.live_tokens, 1, 0);
  print_spectrum("KV used, MB", r.kv_used_bytes, 1e6, 1);
  print_spectrum("KV reserved, MB", r.kv_reserved_bytes, 1e6, 1);
  fmt::print("\nthroughput {:.1f} output tok/s, {:.1f} tok/s in all, {:.3f} requests/s over {:.1f} s, {} steps\n",
             r.output_tokens_per_s, r.total_tokens_per_s, r.requests_per_s, r.seconds, r.steps);
  if (const std::string goal = goal_text(plan.goal); !goal.empty()) {
    fmt::print("goodput    {:.3f} requests/s: {:.1f} % keep {}\n", r.goodput_per_s, percent(r.good_share), goal);
  }
  if (plan.search) {
    if (plan.search->rate > 0) {
      fmt::print("at most    {:.3g} requests/s: then {:.1f} % keep it ({} simulations)\n", plan.search->rate,
                 percent(plan.search->good_share), plan.search->runs);
    } else {
      fmt::print("at most    no rate keeps it: more than 1 % of the requests do not, even alone\n");
    }
  }
  fmt::print(
      "requests   {} answered, {} turned away by a full queue, {} longer than any may be; {:.1f} % wait before they "
      "start, {:.1f} % are preempted ({} times, "
      "{} tokens given up)\n",
      r.requests, r.turned_away, r.never_fit, percent(r.queued_share), percent(r.preempted_share), r.preemptions,
      r.recomputed_tokens);
  fmt::print("memory     {:.1f} % of reserved KV holds no token; {:.1f} % of the pool is free while others wait\n",
             percent(r.internal_waste), percent(r.free_while_waiting));
  fmt::print("prefixes   {:.1f} % of prompt tokens are found in the cache\n", percent(r.prefix_hit_share));
  fmt::print(
      "time       weights {:.0f} %, head and sampling {:.0f} %, attention {:.0f} %, overhead {:.0f} % of the steps; "
      "idle {:.0f} % of all\n",
      percent(r.weights_share), percent(r.head_share), percent(r.attention_share), percent(r.overhead_share),
      percent(r.idle_share));
  constexpr std::pair<const char*, const char*> kLimits[] = {
      {"memory", "memory: requests wait for KV blocks"},
      {"seats", "seats: requests wait for one of --max-num-seqs"},
      {"load", "none yet: the machine is idle at times"},
      {"bandwidth", "bandwidth: steps wait for weights and KV to be read"},
      {"compute", "compute: steps multiply"}};
  for (const auto& [limit, text] : kLimits) {
    if (r.limit == limit) fmt::print("limit      {}\n", text);
  }
  if (!plan.prefix_hits.empty()) {
    fmt::print("\n{:<24}{:>10}\n", fmt::format("cached blocks of {}", plan.workload.prefix_block_tokens), "hits");
    for (const auto& [blocks, share] : plan.prefix_hits) {
      fmt::print("{:<24}{:>8.1f} %\n", blocks == 0 ? "without end" : std::to_string(blocks), percent(share));
    }
  }
  if (!plan.what_if.empty()) print_what_if(plan.what_if);
}

Json to_json(const SimulateReport& r) {
  return {{"requests", r.requests},
          {"turned_away", r.turned_away},
          {"never_fit", r.never_fit},
          {"steps", r.steps},
          {"seconds", r.seconds},
          {"ttft_ms", to_json(r.ttft_ms)},
          {"tpot_ms", to_json(r.tpot_ms)},
          {"itl_ms", to_json(r.itl_ms)},
          {"e2e_ms", to_json(r.e2e_ms)},
          {"queue_ms", to_json(r.queue_ms)},
          {"running", to_json(r.running)},
          {"live_tokens", to_json(r.live_tokens)},
          {"kv_used_bytes", to_json(r.kv_used_bytes)},
          {"kv_reserved_bytes", to_json(r.kv_reserved_bytes)},
          {"output_tokens_per_s", r.output_tokens_per_s},
          {"total_tokens_per_s", r.total_tokens_per_s},
          {"requests_per_s", r.requests_per_s},
          {"goodput_per_s", r.goodput_per_s},
          {"good_share", r.good_share},
          {"queued_share", r.queued_share},
          {"preempted_share", r.preempted_share},
          {"preemptions", r.preemptions},
          {"recomputed_tokens", r.recomputed_tokens},
          {"prefix_hit_share", r.prefix_hit_share},
          {"internal_waste", r.internal_waste},
          {"free_while_waiting", r.free_while_waiting},
          {"max_num_batched_tokens", r.max_num_batched_tokens},
          {"weights_share", r.weights_share},
          {"head_share", r.head_share},
          {"attention_share", r.attention_share},
          {"overhead_share", r.overhead_share},
          {"bandwidth_share", r.bandwidth_share},
          {"idle_share", r.idle_share},
          {"memory_wait_share", r.memory_wait_share},
          {"seat_wait_share", r.seat_wait_share},
          {"limit", r.limit}};
}

Json to_json(const LoadPlan& plan) {
  Json out = {{"workload", plan.workload.name},
              {"machine", {{"file", plan.machine_file}, {"hash", profile_hash(plan.machine)}}},
              {"steps_measured_on_model", plan.costing.measured},
              {"simulation", to_json(plan.report)}};
  if (plan.search) {
    out["largest_rate"] = {{"requests_per_s", plan.search->rate}, {"good_share", plan.search->good_share}};
  }
  if (!plan.what_if.empty()) {
    Json rows = Json::array();
    for (const WhatIf& row : plan.what_if) {
      Json json = {{"change", row.change}};
      if (row.report)
        json["simulation"] = to_json(*row.report);
      else
        json["why_not"] = row.why_not;
      rows.push_back(std::move(json));
    }
    out["what_if"] = std::move(rows);
  }
  if (!plan.prefix_hits.empty()) {
    Json curve = Json::array();
    for (const auto& [blocks, share] : plan.prefix_hits) {
      curve.push_back({{"blocks", blocks == 0 ? Json(nullptr) : Json(blocks)}, {"hit_share", share}});
    }
    out["prefix_hits"] = std::move(curve);
  }
  return out;
}

}  // namespace octavo
