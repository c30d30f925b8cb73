#include "cli/plan_html.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "cli/format.h"
#include "cli/html_report.h"

namespace octavo {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// As the shell gave it.
std::string own_command() {
  std::ifstream file("/proc/self/cmdline");
  std::string out;
  for (std::string word; std::getline(file, word, '\0');) out += (out.empty() ? "" : " ") + word;
  return out;
}

void add_memory(HtmlReport& page, const ModelShape& model, const MemoryQuestion& question, const MemoryPlan& memory) {
  HtmlTable tags{.caption = "What memory goes to", .head = {"purpose", "bytes", "", "why"}};
  BarChart bars{.title = "Memory by purpose", .axis_label = "GiB", .labels = {}, .series = {{"planned", {}}}};
  for (const MemoryTag& tag : memory.tags) {
    tags.rows.push_back({tag.tag, fmt::format("{}", tag.bytes), human_bytes(tag.bytes), tag.why});
    bars.labels.push_back(tag.tag);
    bars.series[0].second.push_back(static_cast<double>(tag.bytes) / (1 << 30));
  }
  page.section("Memory")
      .text(
          fmt::format("{} of {} are planned. A token costs {} bytes of KV ({} as the pool charges it); {} tokens fit, "
                      "the longest request is {}. {} sequences of {} tokens fit at once.",
                      human_bytes(memory.total_bytes), human_bytes(memory.memory_bytes), memory.bytes_per_token,
                      memory.charged_bytes_per_token, memory.tokens_that_fit, memory.longest_request, memory.max_batch,
                      memory.length))
      .plot(bars)
      .table(tags)
      .code(explain(model, question, memory));
}

LineChart quantiles(const char* title, const char* unit, const Spectrum& predicted) {
  PlotSeries series{.name = "predicted", .marks = false};
  for (std::size_t i = 0; i < predicted.percentiles.size(); ++i) {
    series.points.push_back({.x = static_cast<double>(i), .y = predicted.percentiles[i]});
  }
  return {.title = title, .x = {.label = "% of requests"}, .y = {.label = unit}, .series = {std::move(series)}};
}

void add_timeline(HtmlReport& page, const SimulateReport& r) {
  LineChart seats{.title = "Running and waiting", .x = {.label = "seconds"}, .y = {.label = "requests"}};
  LineChart bytes{.title = "KV", .x = {.label = "seconds"}, .y = {.label = "MB"}};
  seats.series = {{.name = "running", .marks = false}, {.name = "waiting", .marks = false}};
  bytes.series = {{.name = "reserved", .marks = false}, {.name = "used", .marks = false}};
  for (const Moment& m : r.timeline) {
    seats.series[0].points.push_back({.x = m.seconds, .y = static_cast<double>(m.running)});
    seats.series[1].points.push_back({.x = m.seconds, .y = static_cast<double>(m.waiting)});
    bytes.series[0].points.push_back({.x = m.seconds, .y = m.kv_reserved_bytes / 1e6});
    bytes.series[1].points.push_back({.x = m.seconds, .y = m.kv_used_bytes / 1e6});
  }
  page.plot(seats).plot(bytes);
}

void add_load(HtmlReport& page, const LoadPlan& load) {
  const SimulateReport& r = load.report;
  HtmlTable table{.caption = "Simulated", .head = {"", "mean", "p50", "p90", "p95", "p99", "max"}};
  const auto row = [&](const char* name, const Spectrum& s, double unit) {
    std::vector<std::string> cells = {name};
    for (const double v : {s.mean, s.p50, s.p90, s.p95, s.p99, s.max}) cells.push_back(fmt::format("{:.4g}", v / unit));
    table.rows.push_back(std::move(cells));
  };
  row("TTFT, ms", r.ttft_ms, 1), row("TPOT, ms", r.tpot_ms, 1), row("ITL, ms", r.itl_ms, 1);
  row("E2E, s", r.e2e_ms, 1e3), row("queueing, ms", r.queue_ms, 1), row("running", r.running, 1);
  row("live tokens", r.live_tokens, 1), row("KV used, MB", r.kv_used_bytes, 1e6);
  row("KV reserved, MB", r.kv_reserved_bytes, 1e6);
  page.section("Load")
      .text(fmt::format("{}; steps {} (profile {} of {}).", load.workload.name,
                        load.costing.measured ? "measured on this model" : "composed from single kernels",
                        profile_hash(load.machine), load.machine.measured))
      .text(fmt::format(
          "{:.1f} output tok/s, {:.3f} requests/s; {} keep the goal; {} wait, {} are preempted; {} of prompt "
          "tokens are cached; {} of reserved KV holds no token. What limits: {}.",
          r.output_tokens_per_s, r.requests_per_s, percent(r.good_share), percent(r.queued_share),
          percent(r.preempted_share), percent(r.prefix_hit_share), percent(r.internal_waste), r.limit))
      .table(table)
      .plot(quantiles("Time to first token", "ms", r.ttft_ms))
      .plot(quantiles("Time per output token", "ms", r.tpot_ms));
  add_timeline(page, r);
  if (load.search) {
    page.text(fmt::format("The largest rate that keeps the goal: {:.3g} requests/s.", load.search->rate));
  }
  if (!load.prefix_hits.empty()) {
    LineChart chart{
        .title = "Prefix hits by size of the cache",
        .x = {.label = fmt::format("blocks of {} tokens", load.workload.prefix_block_tokens), .logarithmic = true},
        .y = {.label = "% of prompt blocks"}};
    chart.series = {{.name = "found"}};
    for (const auto& [blocks, share] : load.prefix_hits) {
      if (blocks > 0) chart.series[0].points.push_back({.x = static_cast<double>(blocks), .y = 100 * share});
    }
    page.plot(chart);
  }
}

void add_what_if(HtmlReport& page, const std::vector<WhatIf>& rows) {
  HtmlTable table{.head = {"change", "output tok/s", "TTFT p99, ms", "TPOT p99, ms", "running", "waste", "preempted",
                           "good", "limit"}};
  BarChart bars{
      .title = "Output tokens per second", .axis_label = "tok/s", .labels = {}, .series = {{"simulated", {}}}};
  for (const WhatIf& row : rows) {
    if (!row.report) {
      table.rows.push_back({row.change, row.why_not, "", "", "", "", "", "", ""});
      continue;
    }
    const SimulateReport& r = *row.report;
    table.rows.push_back({row.change, fmt::format("{:.1f}", r.output_tokens_per_s),
                          fmt::format("{:.0f}", r.ttft_ms.p99), fmt::format("{:.1f}", r.tpot_ms.p99),
                          fmt::format("{:.1f}", r.running.mean), percent(r.internal_waste), percent(r.preempted_share),
                          percent(r.good_share), r.limit});
    bars.labels.push_back(row.change);
    bars.series[0].second.push_back(r.output_tokens_per_s);
  }
  page.section("What if").text("The same requests, one thing changed at a time.").plot(bars).table(table);
}

void add_check(HtmlReport& page, const CheckReport& check) {
  page.section("Predicted and measured")
      .text(fmt::format("Predicted by profile {} of {} before the run; nothing is fitted to what was measured.",
                        check.machine_hash, check.measured_at));
  for (const CheckedLevel& level : check.levels) {
    HtmlTable table{.caption = fmt::format("{:.3g} requests/s, {}", level.rate, level.name),
                    .head = {"figure", "predicted", "measured", "error", "bound", ""}};
    for (const CheckedFigure& f : level.figures) {
      table.rows.push_back({f.name, fmt::format("{:.5g}", f.predicted), fmt::format("{:.5g}", f.measured),
                            percent(f.error()), percent(f.bound), f.kept() ? "" : "missed"});
    }
    page.table(table);
  }
}

}  // namespace

Result<> write_plan_page(const std::string& path, const ModelShape& model, const MemoryQuestion& question,
                         const MemoryPlan& memory, const LoadPlan* load, const CheckReport* check) {
  HtmlReport page(fmt::format("A plan for {}", model.name));
  page.condition("model", fmt::format("{} ({}), {}", model.name, model.architecture, model.source));
  page.condition("memory", human_bytes(memory.memory_bytes));
  if (load != nullptr) {
    page.condition("machine",
                   fmt::format("{}, {}, {} threads", load->machine.cpu, load->machine.isa, load->machine.threads));
  }
  page.condition("command", own_command());
  add_memory(page, model, question, memory);
  if (load != nullptr) {
    add_load(page, *load);
    if (!load->what_if.empty()) add_what_if(page, load->what_if);
  }
  if (check != nullptr) add_check(page, *check);
  return page.write(path);
}

}  // namespace octavo
