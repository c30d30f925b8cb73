// The built-in profiles: public traces as far as their statistics are published.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capacity/lengths.h"
#include "capacity/random.h"
#include "octavo/workload.h"

namespace octavo {

struct WorkloadProfile {
  std::string name;
  LengthCurve prompt, output;
  std::optional<double> rate{};  // per second; none: of its own it has no arrivals
  double burstiness = 1;         // shape of the gaps: 1 / CV^2
  bool shares_prefixes = false;
};

[[nodiscard]] std::span<const WorkloadProfile> workload_profiles();
/// Null: there is none of this name.
[[nodiscard]] const WorkloadProfile* find_profile(const std::string& name);

/// Gives each prompt ids of its blocks, leading ones those of an earlier prompt, so that caches hit as the Mooncake
/// conversation trace makes them hit.
void add_prefix_ids(std::vector<PlannedRequest>& requests, std::uint32_t block_tokens, Random random);

}  // namespace octavo
