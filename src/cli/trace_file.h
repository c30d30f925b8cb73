// Reads the trace file of --trace (docs/trace.md), line by line.
#pragma once
#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>

#include "cli/jsonl.h"
#include "octavo/result.h"
#include "octavo/trace.h"

namespace octavo {

/// {"request", "event", ...}; what an event does not tell is zero.
struct TracedMoment {
  std::uint64_t request = 0;
  std::uint32_t choice = 0;
  std::string event;  // "arrived", "scheduled", "first_token", "finished"
  std::int64_t at_us = 0;
  std::uint32_t prompt_tokens = 0, choices = 0, completion_tokens = 0, cached_tokens = 0;
  std::string reason;  // of "finished"
};

/// One line: exactly one of these is set.
struct TraceLine {
  std::optional<Json> head;  // the first line
  std::optional<StepRecord> step;
  std::optional<TracedMoment> moment;
  std::optional<std::string> kv;      // "stored", "removed", "cleared"
  std::optional<std::uint64_t> lost;  // records that are missing here
  std::uint64_t kv_blocks = 0;        // named by kv
  bool end = false;                   // the last line of a trace that was closed in order
};

/// Calls `see` for every line. A line that is none is an error that names it by number.
[[nodiscard]] Result<> read_trace(std::istream& in, const std::string& path,
                                  const std::function<void(const TraceLine& line)>& see);

}  // namespace octavo
