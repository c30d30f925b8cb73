// Lengths as a person writes them: "prompt:p50=1020,p90=2735;output:lognormal=5.02/0.86". See octavo/workload.h.
#pragma once
#include <string>
#include <string_view>

#include "capacity/lengths.h"
#include "octavo/result.h"

namespace octavo {

struct LengthDistributions {
  LengthCurve prompt, output;
};

/// Whether `source` is meant as a distribution rather than as a file.
[[nodiscard]] bool looks_like_distribution(std::string_view source);

/// Any text. Errors name the part, the value, its limit and what to write.
[[nodiscard]] Result<LengthDistributions> parse_distribution(std::string_view source);

}  // namespace octavo
