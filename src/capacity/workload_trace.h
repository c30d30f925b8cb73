// Reads traces of requests: CSV with a header, or JSON lines.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/result.h"
#include "octavo/workload.h"

namespace octavo {

struct Trace {
  std::vector<PlannedRequest> requests;  // arrivals since the first one; all 0 if the trace has none
  bool timed = false;
  std::uint64_t failed = 0;  // answers of no token, left out
};

/// Any text. Errors name `file`, the line, the column and what stands there.
[[nodiscard]] Result<Trace> parse_trace(const std::string& file, std::string_view text);

[[nodiscard]] Result<Trace> read_trace(const std::string& path);

}  // namespace octavo
