#include "capacity/workload_profiles.h"

#include <algorithm>

namespace octavo {
namespace {

// Published are the quantiles that docs/workloads.md lists. What is not published is assumed so that the mean (and the
// deviation, where it is known) comes out as published, and marked "assumed". Prompt and answer of a request are drawn
// apart: how they hang together is not published.
std::vector<WorkloadProfile> make_profiles() {
  WorkloadProfile conversation{"azure-conversation",
                               {{0, 1} /* assumed, as .999 */,
                                {.05, 181},
                                {.25, 396},
                                {.5, 1020},
                                {.75, 1189},
                                {.90, 2735},
                                {.95, 4083},
                                {.99, 4142},
                                {.999, 6500},
                                {1, 14050}},
                               {{0, 1} /* assumed */,
                                {.05, 41},
                                {.25, 85},
                                {.5, 129},
                                {.75, 395},
                                {.90, 424},
                                {.95, 451},
                                {.99, 601},
                                {1, 1000}},
                               5.53,
                               1 / (1.09 * 1.09)};
  WorkloadProfile code{
      "azure-code",
      {{0, 1} /* assumed */, {.05, 75}, {.25, 578}, {.5, 1469}, {.75, 2745}, {.90, 5194}, {.99, 7436}, {1, 7437}},
      {{0, 1} /* assumed, as .05, .25, .75, .95 and .999 */,
       {.05, 6},
       {.25, 9},
       {.5, 13},
       {.75, 24},
       {.90, 55},
       {.95, 85},
       {.99, 252},
       {.999, 450},
       {1, 1899}},
      2.57,
      1 / (13.2 * 13.2)};
  // Published are the means after the usual filter, 215 and 198; the shape is assumed.
  WorkloadProfile sharegpt{"sharegpt", lognormal_curve(5.02, 1.5, 4, 1024), lognormal_curve(4.9, 1.15, 4, 1024), {}};
  WorkloadProfile mooncake{
      "mooncake-conversation",
      {{0, 1} /* assumed */, {.5, 6909}, {.90, 27367}, {.99, 85400}, {1, 126195}},
      {{0, 1} /* assumed, as .1 and .25 */, {.1, 25}, {.25, 140}, {.5, 350}, {.90, 597}, {.99, 1118}, {1, 2000}},
      3.40,
      1 / (3.0 * 3.0),
      true};
  return {conversation, code, sharegpt, mooncake};
}

// Follow-ups: so many requests go on from an earlier prompt, this many requests back. Fitted to the hit shares of the
// trace in caches of 1,000, 10,000, 50,000 and unlimited blocks.
constexpr double kFollowUps = .53;
const LengthCurve& turns_back() {
  static const LengthCurve curve = {{0, 1}, {.06, 42}, {.40, 430}, {.94, 3000}, {1, 9000}};
  return curve;
}
constexpr std::size_t kCandidates = 8;  // of which the one that shares most is gone on from

}  // namespace

std::span<const WorkloadProfile> workload_profiles() {
  static const std::vector<WorkloadProfile> profiles = make_profiles();
  return profiles;
}

const WorkloadProfile* find_profile(const std::string& name) {
  const auto profiles = workload_profiles();
  const auto found = std::ranges::find(profiles, name, &WorkloadProfile::name);
  return found == profiles.end() ? nullptr : &*found;
}

void add_prefix_ids(std::vector<PlannedRequest>& requests, std::uint32_t block_tokens, Random random) {
  std::uint64_t next_id = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    PlannedRequest& request = requests[i];
    const bool follows = random.uniform() < kFollowUps;
    const std::size_t back = length_at(turns_back(), random.uniform());
    const PlannedRequest* parent = nullptr;
    std::uint32_t shared = 0;
    for (std::size_t distance = back; follows && distance < back + kCandidates && distance <= i; ++distance) {
      const PlannedRequest& candidate = requests[i - distance];
      const std::uint32_t full = std::min(candidate.prompt_tokens, request.prompt_tokens) / block_tokens;
      if (full > shared) parent = &candidate, shared = full;
    }
    request.prefix_ids.reserve(request.prompt_tokens / block_tokens + 1);
    if (parent != nullptr) {
      request.prefix_ids.assign(parent->prefix_ids.begin(), parent->prefix_ids.begin() + shared);
    }
    while (request.prefix_ids.size() * block_tokens < request.prompt_tokens) request.prefix_ids.push_back(next_id++);
  }
}

}  // namespace octavo
