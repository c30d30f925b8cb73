#include "cli/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {
namespace {

constexpr int kSteps = 1, kRequests = 2;  // processes, as the viewers group them

std::string title(std::uint64_t request, std::uint32_t choice) {
  return choice == 0 ? fmt::format("request {}", request) : fmt::format("request {}, choice {}", request, choice);
}

}  // namespace

ChromeTrace::ChromeTrace(std::ostream& out) : out_(out) {
  out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (const auto& [process, name] : {std::pair{kSteps, "engine"}, std::pair{kRequests, "requests"}}) {
    event({{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"tid", 1}, {"args", {{"name", name}}}});
  }
  event({{"name", "thread_name"}, {"ph", "M"}, {"pid", kSteps}, {"tid", 1}, {"args", {{"name", "steps"}}}});
}

void ChromeTrace::add(const TraceLine& line) {
  if (line.step) step(*line.step);
  if (line.moment) moment(*line.moment);
}

/// Spans that the trace does not see the end of end with it.
void ChromeTrace::finish() {
  const auto open = std::move(open_);
  for (const auto& [choice, inner] : open) {
    span("e", choice, inner, last_us_);
    span("e", choice, title(choice.first, choice.second), last_us_);
  }
  out_ << "\n]}\n";
}

void ChromeTrace::step(const StepRecord& r) {
  last_us_ = std::max(last_us_, r.begin_us + r.duration_us);
  event({{"name", fmt::format("{} rows, {} tokens", r.rows, r.tokens)},
         {"cat", "step"},
         {"ph", "X"},
         {"pid", kSteps},
         {"tid", 1},
         {"ts", r.begin_us},
         {"dur", r.duration_us},
         {"args",
          {{"step", r.step},
           {"run_us", r.run_us},
           {"decode_rows", r.decode_rows},
           {"prompt_rows", r.prompt_rows},
           {"prompt_tokens", r.prompt_tokens},
           {"budget", r.budget},
           {"sampled_tokens", r.sampled_tokens},
           {"admitted", r.admitted},
           {"resumed", r.resumed},
           {"preempted_recompute", r.preempted_recompute},
           {"preempted_swap", r.preempted_swap},
           {"cached_tokens", r.cached_tokens},
           {"forked_tokens", r.forked_tokens},
           {"recovered_tokens", r.recovered_tokens},
           {"saves", r.saves},
           {"loads", r.loads},
           {"copies", r.copies},
           {"zeros", r.zeros}}}});
  counter("tokens", r.begin_us, {{"prompt", r.prompt_tokens}, {"decode", r.tokens - r.prompt_tokens}});
  counter("sequences", r.begin_us + r.duration_us, {{"running", r.running}, {"waiting", r.waiting}});
  counter("blocks", r.begin_us + r.duration_us,
          {{"used", r.blocks_used},
           {"cached", r.blocks_cached},
           {"free", r.blocks_free - std::min(r.blocks_cached, r.blocks_free)}});
}

void ChromeTrace::moment(const TracedMoment& m) {
  last_us_ = std::max(last_us_, m.at_us);
  if (m.event == "arrived") {
    for (std::uint32_t i = 0; i < m.choices; ++i) {
      const Choice choice{m.request, i};
      span("b", choice, title(m.request, i), m.at_us, {{"prompt_tokens", m.prompt_tokens}});
      span("b", choice, open_[choice] = "queue", m.at_us);
    }
    return;
  }
  const Choice choice{m.request, m.choice};
  const auto inner = open_.find(choice);
  if (inner == open_.end()) return;  // its beginning is lost
  span("e", choice, inner->second, m.at_us);
  if (m.event == "finished") {
    span("e", choice, title(m.request, m.choice), m.at_us,
         {{"reason", m.reason}, {"completion_tokens", m.completion_tokens}});
    open_.erase(inner);
    return;
  }
  inner->second = m.event == "scheduled" ? "prompt" : "output";
  span("b", choice, inner->second, m.at_us);
}

void ChromeTrace::counter(const char* name, std::int64_t at_us, Json values) {
  event({{"name", name}, {"ph", "C"}, {"pid", kSteps}, {"tid", 1}, {"ts", at_us}, {"args", std::move(values)}});
}

void ChromeTrace::span(const char* phase, const Choice& choice, const std::string& name, std::int64_t at_us,
                       Json args) {
  Json span = {
      {"name", name},     {"cat", "request"}, {"ph", phase}, {"id", fmt::format("{}.{}", choice.first, choice.second)},
      {"pid", kRequests}, {"tid", 1},         {"ts", at_us}};
  if (!args.is_null()) span["args"] = std::move(args);
  event(std::move(span));
}

void ChromeTrace::event(Json event) {
  if (!first_) out_ << ",\n";
  first_ = false;
  out_ << dump(event);
}

}  // namespace octavo
