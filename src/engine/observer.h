// What is told of the engine's work: counters, the log of recent steps, the trace file.
//
// Threads: the engine thread; recent() and trace_lost() any.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/step_log.h"
#include "engine/trace_writer.h"
#include "kv/kv_events.h"
#include "octavo/engine.h"
#include "octavo/request.h"
#include "sched/sequence.h"

namespace octavo {

/// The trace file that `config` asks for, with its first line; nullptr: none.
[[nodiscard]] Result<std::unique_ptr<TraceWriter>> open_trace(const EngineConfig& config, const EngineReport& report);

class Observer {
 public:
  /// `trace` may be nullptr.
  explicit Observer(std::unique_ptr<TraceWriter> trace) : trace_(std::move(trace)) {}

  [[nodiscard]] bool tracing() const { return trace_ != nullptr; }
  void arrived(RequestId id, const Request& request, Micros at);
  void scheduled(RequestId id, std::uint32_t choice, Micros at, std::uint32_t cached_tokens);
  void token(RequestId id, std::uint32_t choice, Micros at, bool first);
  void finished(RequestId id, std::uint32_t choice, Micros at, const Sequence& sequence);
  void step(const StepPlan& plan, const StepResult& result, const StepFacts& facts, std::span<const BatchRow> batch);
  void kv(const KvEvents& events) { trace_->kv(events); }

  /// What neither scheduler nor KV counts; all else is zero.
  [[nodiscard]] const EngineStats& counted() const { return counted_; }
  [[nodiscard]] std::vector<RecentStep> recent(std::size_t most) const { return log_.recent(most); }
  [[nodiscard]] std::uint64_t trace_lost() const { return trace_ == nullptr ? 0 : trace_->lost(); }

 private:
  StepLog log_;
  std::unique_ptr<TraceWriter> trace_;
  EngineStats counted_;
};

}  // namespace octavo
