// What one step of the engine did, as a value: for boards, tests and the trace file (docs/trace.md).
#pragma once
#include <cstdint>
#include <vector>

#include "octavo/ids.h"

namespace octavo {

/// Moments are of the steady clock, in microseconds. Gauges are of the end of the step.
struct StepRecord {
  std::uint64_t step = 0;        // consecutive, from 1
  std::int64_t begin_us = 0;     // the scheduler is asked for a plan
  std::int64_t run_us = 0;       // in the executor
  std::int64_t duration_us = 0;  // until its tokens are delivered
  // What was computed.
  std::uint32_t rows = 0, decode_rows = 0, prompt_rows = 0, failed_rows = 0;  // a prompt row holds prompt tokens
  std::uint32_t tokens = 0, prompt_tokens = 0;                                // through the weights; of those, prompt
  std::uint32_t budget = 0;  // the most tokens that this step was allowed
  std::uint32_t sampled_tokens = 0;
  // Who came and went.
  std::uint32_t admitted = 0, resumed = 0;  // all that started to run; of those, had run before
  std::uint32_t preempted_recompute = 0, preempted_swap = 0;
  std::uint32_t finished = 0;          // since the step before
  std::uint64_t lookup_tokens = 0;     // prompts of the newly admitted that were looked up in the prefix cache
  std::uint64_t cached_tokens = 0;     // found there
  std::uint64_t forked_tokens = 0;     // or shared with the choice that they forked from
  std::uint64_t recovered_tokens = 0;  // of resumed ones, cached or restored: not computed again
  std::uint64_t lost_tokens = 0;       // computed, then given up by preemption
  // What is left.
  std::uint32_t running = 0, waiting = 0;
  std::uint32_t blocks_free = 0, blocks_cached = 0, blocks_used = 0;  // cached ones are free, too
  std::uint32_t host_used = 0;                                        // slots of the host pool
  std::uint32_t saves = 0, loads = 0, copies = 0, zeros = 0;          // whole blocks moved or cleared by this step
};

/// Calls f(name, field) for every field, in the order of the trace file, whose names these are.
template <class Record, class F>
void for_each_field(Record& r, F&& f) {
  f("step", r.step), f("begin_us", r.begin_us), f("run_us", r.run_us), f("duration_us", r.duration_us);
  f("rows", r.rows), f("decode_rows", r.decode_rows), f("prompt_rows", r.prompt_rows);
  f("failed_rows", r.failed_rows), f("tokens", r.tokens), f("prompt_tokens", r.prompt_tokens), f("budget", r.budget);
  f("sampled_tokens", r.sampled_tokens), f("admitted", r.admitted), f("resumed", r.resumed);
  f("preempted_recompute", r.preempted_recompute), f("preempted_swap", r.preempted_swap), f("finished", r.finished);
  f("lookup_tokens", r.lookup_tokens), f("cached_tokens", r.cached_tokens), f("forked_tokens", r.forked_tokens);
  f("recovered_tokens", r.recovered_tokens), f("lost_tokens", r.lost_tokens);
  f("running", r.running), f("waiting", r.waiting), f("blocks_free", r.blocks_free);
  f("blocks_cached", r.blocks_cached), f("blocks_used", r.blocks_used), f("host_used", r.host_used);
  f("saves", r.saves), f("loads", r.loads), f("copies", r.copies), f("zeros", r.zeros);
}

/// One row of a step's batch: positions [first_position, first_position + tokens) of one choice.
struct BatchRow {
  RequestId request;
  std::uint32_t choice = 0;
  std::uint32_t first_position = 0;
  std::uint32_t tokens = 0;
  std::uint32_t prompt_tokens = 0;  // of those
};

/// A step and its batch, most urgent row first. `batch` is empty if newer rows have taken its place in the log.
struct RecentStep {
  StepRecord record;
  std::vector<BatchRow> batch;
};

}  // namespace octavo
