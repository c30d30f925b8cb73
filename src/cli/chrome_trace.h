// A trace as chrome://tracing and Perfetto read it: steps as slices, choices of requests as async spans, blocks, tokens
// and sequences as counters.
#pragma once
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <utility>

#include "cli/trace_file.h"

namespace octavo {

class ChromeTrace {
 public:
  /// Writes the beginning; finish() the end.
  explicit ChromeTrace(std::ostream& out);
  void add(const TraceLine& line);
  void finish();

 private:
  using Choice = std::pair<std::uint64_t, std::uint32_t>;  // request, choice

  void step(const StepRecord& r);
  void moment(const TracedMoment& m);
  void counter(const char* name, std::int64_t at_us, Json values);
  void span(const char* phase, const Choice& choice, const std::string& name, std::int64_t at_us, Json args = nullptr);
  void event(Json event);

  std::ostream& out_;
  bool first_ = true;
  std::int64_t last_us_ = 0;
  std::map<Choice, std::string> open_;  // the span inside "request" that is open
};

}  // namespace octavo
