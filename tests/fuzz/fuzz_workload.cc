// Any text as a trace, or as a distribution: an error, or requests within their limits that arrive in order.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "capacity/workload_distribution.h"
#include "capacity/workload_trace.h"

namespace {

bool sound(const octavo::LengthCurve& curve) {
  for (const double share : {0.0, .001, .37, .5, .999, 1.0}) {
    const std::uint32_t tokens = octavo::length_at(curve, share);
    if (tokens < 1 || tokens > octavo::kMaxRequestTokens) return false;
  }
  return octavo::length_at(curve, .2) <= octavo::length_at(curve, .8);
}

bool sound(const octavo::Trace& trace) {
  std::chrono::microseconds last{};
  for (const octavo::PlannedRequest& r : trace.requests) {
    if (r.arrival < last || r.prompt_tokens < 1 || r.prompt_tokens > octavo::kMaxRequestTokens) return false;
    if (r.output_tokens < 1 || r.output_tokens > octavo::kMaxRequestTokens) return false;
    last = r.arrival;
  }
  return !trace.requests.empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (octavo::looks_like_distribution(text)) {
    const auto lengths = octavo::parse_distribution(text);
    if (lengths && !(sound(lengths->prompt) && sound(lengths->output))) __builtin_trap();
  }
  const auto trace = octavo::parse_trace("fuzz", text);
  if (trace && !sound(*trace)) __builtin_trap();
  return 0;
}
