#include "cli/arrival_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <sstream>

#include "cli/validators.h"

namespace octavo {

void add_arrival_options(CLI::App& app, ArrivalOptions& options) {
  Arrivals& arrivals = options.arrivals;
  app.add_option("--rate", arrivals.rate, "requests per second; inf: all at once (default: the workload's own)");
  app.add_option("--burstiness", arrivals.burstiness, "1: Poisson; below: bursts (default: the workload's own)");
  app.add_option("--concurrency", arrivals.concurrency, "closed loop: so many requests at a time")
      ->check(whole_number(1, 1'000'000));
  app.add_option("--requests", arrivals.requests, "how many (default: the trace's, else 1000)")
      ->check(whole_number(1, kMaxRequests));
  app.add_option("--duration", options.duration_s, "seconds of arrivals, instead of --requests")
      ->check(whole_number(1, std::numeric_limits<std::uint32_t>::max()));
  app.add_option("--seed", arrivals.seed, "of lengths, arrivals and prompts")
      ->check(whole_number())
      ->capture_default_str();
}

Arrivals ArrivalOptions::asked() const {
  Arrivals all = arrivals;
  if (duration_s > 0) all.duration = std::chrono::seconds(duration_s);
  return all;
}

Result<ServiceGoal> parse_goal(const std::string& text) {
  ServiceGoal goal;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals);
    auto* limit = name == "ttft" ? &goal.ttft : name == "tpot" ? &goal.tpot : name == "e2e" ? &goal.e2e : nullptr;
    constexpr std::uint32_t kMostMs = 1'000'000'000;
    std::uint32_t ms = 0;
    const char *begin = part.data() + std::min(equals + 1, part.size()), *end = part.data() + part.size();
    const auto [rest, problem] = std::from_chars(begin, end, ms);
    if (limit == nullptr || *limit || problem != std::errc() || rest != end || ms < 1 || ms > kMostMs) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--goal: '{}' is not ttft=MS, tpot=MS or e2e=MS, each once, with 1 to {} milliseconds",
                               part, kMostMs),
                   "--goal"};
    }
    *limit = std::chrono::milliseconds(ms);
  }
  return goal;
}

}  // namespace octavo
