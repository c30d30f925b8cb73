#include "octavo/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <list>
#include <unordered_map>
#include <utility>

#include "capacity/random.h"
#include "capacity/workload_distribution.h"
#include "capacity/workload_profiles.h"
#include "capacity/workload_trace.h"

namespace octavo {
namespace {

using std::chrono::microseconds;

constexpr double kAtOnce = std::numeric_limits<double>::infinity();
constexpr double kMaxRate = 1e6;
constexpr double kLeastBurstiness = 1e-4, kMostBurstiness = 1e4;
constexpr std::uint32_t kMaxConcurrency = 1'000'000;
constexpr std::int64_t kMaxSeconds = 10LL * 366 * 86400;

Error refused(const char* field, std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message), field};
}

/// What is wrong with the flags alone.
Result<> check(const Arrivals& a) {
  if (a.rate && !(*a.rate > 0)) {
    return refused("rate", fmt::format("--rate {} is not above 0: give requests per second, or inf", *a.rate));
  }
  if (a.rate && *a.rate > kMaxRate && a.rate != kAtOnce) {
    return refused("rate", fmt::format("--rate {} is more than {} a second; inf lets all arrive at once", *a.rate,
                                       static_cast<std::uint32_t>(kMaxRate)));
  }
  if (a.burstiness && !(*a.burstiness >= kLeastBurstiness && *a.burstiness <= kMostBurstiness)) {
    return refused("burstiness", fmt::format("--burstiness {} is not within {} and {}: 1 is Poisson, less is bursts",
                                             *a.burstiness, kLeastBurstiness, kMostBurstiness));
  }
  if (a.concurrency && (*a.concurrency == 0 || *a.concurrency > kMaxConcurrency)) {
    return refused("concurrency",
                   fmt::format("--concurrency {} is not within 1 and {}", *a.concurrency, kMaxConcurrency));
  }
  const auto clash = [](const char* one, const char* other, const char* why) {
    return refused(one, fmt::format("--{} together with --{}: {}", one, other, why));
  };
  constexpr const char* kClosed = "with --concurrency a request arrives when another ends: leave one of them out";
  if (a.concurrency && a.rate) return clash("concurrency", "rate", kClosed);
  if (a.concurrency && a.burstiness) return clash("concurrency", "burstiness", kClosed);
  if (a.concurrency && a.duration) {
    return clash("concurrency", "duration", "how long a closed loop takes is not known ahead: give --requests");
  }
  if (a.rate == kAtOnce && (a.burstiness || a.duration)) {
    return clash("rate inf", a.burstiness ? "burstiness" : "duration", "all requests arrive at once");
  }
  if (a.requests && a.duration) return clash("requests", "duration", "one follows from the other by the rate");
  if (a.requests && (*a.requests == 0 || *a.requests > kMaxRequests)) {
    return refused("requests", fmt::format("--requests {} is not within 1 and {}", *a.requests, kMaxRequests));
  }
  if (a.duration && (a.duration->count() <= 0 || a.duration->count() > kMaxSeconds)) {
    return refused("duration",
                   fmt::format("--duration {} s is not within 1 and {} s", a.duration->count(), kMaxSeconds));
  }
  return Ok{};
}

/// What of a seed is drawn apart: changing one leaves the others as they are.
enum class Stream : std::uint8_t { kLengths, kGaps, kPrefixes };
Random stream(std::uint64_t seed, Stream which) {
  Random random(seed);
  for (std::uint8_t i = 0; i < static_cast<std::uint8_t>(which); ++i) random = Random(~random.next());
  return random;
}

std::string grouped(std::uint64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string count_of(std::uint64_t requests) {
  return fmt::format("{} request{}", grouped(requests), requests == 1 ? "" : "s");
}

std::string shape_of(double burstiness) {
  return burstiness == 1 ? "" : fmt::format(" (gaps Gamma {:.3g})", burstiness);
}

/// So that n requests arrive within n / rate: the gaps behind each add up to that. Checked: rate is finite.
Result<> spread(std::vector<PlannedRequest>& requests, double rate, double burstiness, Random random) {
  const double seconds = static_cast<double>(requests.size()) / rate;
  if (seconds > static_cast<double>(kMaxSeconds)) {
    return refused("rate", fmt::format("--rate {}: {} take {:.3g} s, at most {} s are planned", rate,
                                       count_of(requests.size()), seconds, kMaxSeconds));
  }
  std::vector<double> starts;
  starts.reserve(requests.size());
  double sum = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    starts.push_back(sum);
    sum += random.gamma(burstiness);
  }
  const double scale = sum > 0 ? seconds * 1e6 / sum : 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].arrival = microseconds(static_cast<std::int64_t>(starts[i] * scale));
  }
  return Ok{};
}

Result<std::uint32_t> count_by_duration(double rate, std::chrono::seconds duration) {
  const double requests = std::floor(rate * static_cast<double>(duration.count()) + .5);
  if (requests < 1 || requests > kMaxRequests) {
    return refused("duration", fmt::format("--duration {} s at {}/s makes {} requests, not 1 to {}", duration.count(),
                                           rate, requests, kMaxRequests));
  }
  return static_cast<std::uint32_t>(requests);
}

Result<Workload> draw(const WorkloadProfile& profile, const Arrivals& a) {
  const double rate = a.concurrency ? kAtOnce : a.rate.value_or(profile.rate.value_or(0));
  if (rate == 0) {
    return refused("rate", fmt::format("'{}' has no rate of its own: give --rate or --concurrency", profile.name));
  }
  std::uint32_t count = a.requests.value_or(kDefaultRequests);
  if (a.duration) {
    OCTAVO_TRY(count, count_by_duration(rate, *a.duration));
  }
  Workload workload;
  workload.concurrency = a.concurrency;
  workload.requests.resize(count);
  Random lengths = stream(a.seed, Stream::kLengths);
  for (PlannedRequest& request : workload.requests) {
    request.prompt_tokens = length_at(profile.prompt, lengths.uniform());
    request.output_tokens = length_at(profile.output, lengths.uniform());
  }
  std::string arrive = a.concurrency ? fmt::format("{} at a time", *a.concurrency) : "all at once";
  if (rate != kAtOnce) {
    const double burstiness = a.burstiness.value_or(profile.burstiness);
    OCTAVO_CHECK_OK(spread(workload.requests, rate, burstiness, stream(a.seed, Stream::kGaps)));
    arrive = fmt::format("{:.4g}/s{}", rate, shape_of(burstiness));
  }
  if (profile.shares_prefixes) {
    add_prefix_ids(workload.requests, workload.prefix_block_tokens, stream(a.seed, Stream::kPrefixes));
  }
  workload.name = fmt::format("{}, {}, {}, seed {}", profile.name, arrive, count_of(count), a.seed);
  return workload;
}

/// Stretches recorded gaps until n requests come at `rate`; the last gap counts as the mean one.
Result<> stretch(std::vector<PlannedRequest>& requests, double rate, double recorded) {
  const double factor = recorded / rate;
  if (static_cast<double>(requests.back().arrival.count()) * factor > static_cast<double>(kMaxSeconds) * 1e6) {
    return refused("rate", fmt::format("--rate {}: the trace would take more than {} s", rate, kMaxSeconds));
  }
  for (PlannedRequest& request : requests) {
    request.arrival = microseconds(static_cast<std::int64_t>(static_cast<double>(request.arrival.count()) * factor));
  }
  return Ok{};
}

Result<Workload> replay(const std::string& source, const Arrivals& a) {
  OCTAVO_TRY(Trace trace, read_trace(source));
  Workload workload;
  workload.requests = std::move(trace.requests);
  auto& requests = workload.requests;
  if (a.requests && *a.requests > requests.size()) {
    return refused("requests", fmt::format("--requests {}: {} has {}", *a.requests, source, count_of(requests.size())));
  }
  const bool at_once = a.rate == kAtOnce;
  if (!trace.timed && !a.concurrency && !a.rate) {
    return refused("rate", fmt::format("{} says nothing of arrivals: give --rate or --concurrency", source));
  }
  std::string arrive;
  if (a.concurrency || at_once) {
    for (PlannedRequest& request : requests) request.arrival = microseconds(0);
    arrive = at_once ? "all at once" : fmt::format("{} at a time", *a.concurrency);
  } else {
    const double span = std::chrono::duration<double>(requests.back().arrival).count();
    const double recorded = span > 0 ? static_cast<double>(requests.size() - 1) / span : 0;
    const bool drawn = a.burstiness || !trace.timed;
    const double rate = a.rate.value_or(recorded);
    if (recorded == 0 && trace.timed && (a.rate || drawn) && !(a.rate && a.burstiness)) {
      return refused("rate", fmt::format("all requests of {} arrive at once, which has no rate: give --rate and "
                                         "--burstiness",
                                         source));
    }
    if (drawn) {
      const double burstiness = a.burstiness.value_or(1);
      OCTAVO_CHECK_OK(spread(requests, rate, burstiness, stream(a.seed, Stream::kGaps)));
      arrive = fmt::format("{:.4g}/s{}", rate, shape_of(burstiness));
    } else {
      if (a.rate) OCTAVO_CHECK_OK(stretch(requests, rate, recorded));
      arrive = a.rate ? fmt::format("stretched to {:.4g}/s", rate) : fmt::format("{:.4g}/s as recorded", rate);
    }
  }
  if (a.duration) {
    const auto end = std::ranges::find_if(requests, [&](const auto& r) { return r.arrival >= *a.duration; });
    requests.erase(end, requests.end());
  }
  if (a.requests) requests.resize(*a.requests);
  workload.concurrency = a.concurrency;
  workload.name =
      fmt::format("{}, {}, {}", std::filesystem::path(source).filename().string(), arrive, count_of(requests.size()));
  if (a.burstiness || !(trace.timed || a.concurrency || at_once)) workload.name += fmt::format(", seed {}", a.seed);
  if (trace.failed > 0) workload.name += fmt::format(" ({} failed of the trace left out)", grouped(trace.failed));
  return workload;
}

}  // namespace

Result<Workload> make_workload(const std::string& source, const Arrivals& arrivals) {
  OCTAVO_CHECK_OK(check(arrivals));
  if (const WorkloadProfile* profile = find_profile(source)) return draw(*profile, arrivals);
  if (looks_like_distribution(source)) {
    OCTAVO_TRY(LengthDistributions lengths, parse_distribution(source));
    WorkloadProfile profile;
    profile.name = source, profile.prompt = std::move(lengths.prompt), profile.output = std::move(lengths.output);
    return draw(profile, arrivals);
  }
  auto workload = replay(source, arrivals);
  if (!workload && workload.error().code == ErrorCode::kNotFound) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("--workload '{}' is neither a file nor a distribution (prompt:...;output:...) nor one of {}",
                    source, fmt::join(builtin_workloads(), ", ")),
        "workload"};
  }
  return workload;
}

std::vector<std::string> builtin_workloads() {
  std::vector<std::string> names;
  for (const WorkloadProfile& profile : workload_profiles()) names.push_back(profile.name);
  return names;
}

double prefix_hit_share(const Workload& workload, std::optional<std::uint64_t> cache_blocks) {
  std::list<std::uint64_t> used;  // latest first
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places;
  std::uint64_t hits = 0, blocks = 0;
  for (const PlannedRequest& request : workload.requests) {
    blocks += (request.prompt_tokens + workload.prefix_block_tokens - 1) / workload.prefix_block_tokens;
    for (const std::uint64_t id : request.prefix_ids) {
      if (!places.contains(id)) break;
      ++hits;
    }
    // The tail is touched first, so that it goes first.
    for (auto id = request.prefix_ids.rbegin(); id != request.prefix_ids.rend(); ++id) {
      if (const auto place = places.find(*id); place != places.end()) {
        used.splice(used.begin(), used, place->second);
        continue;
      }
      if (cache_blocks && used.size() >= *cache_blocks) {
        if (used.empty()) continue;
        places.erase(used.back());
        used.pop_back();
      }
      used.push_front(*id);
      places.emplace(*id, used.begin());
    }
  }
  return blocks == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(blocks);
}

}  // namespace octavo
