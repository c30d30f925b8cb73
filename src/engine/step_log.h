// The last steps, for whoever asks: a bounded ring that the engine's thread writes without locks or allocation.
//
// Threads: add() by one writer; recent() by any. A reader never holds up the writer: what was overwritten while it read
// is left out.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/published.h"
#include "kv/kv_types.h"
#include "octavo/trace.h"
#include "sched/step_plan.h"
#include "sched/step_result.h"

namespace octavo {

/// What is known of a step beside its plan and result.
struct StepFacts {
  Micros begin{}, run{}, duration{};
  std::uint32_t budget = 0, running = 0, waiting = 0;
  std::uint64_t lookup_tokens = 0;
  KvCounters kv;  // after the step
};

[[nodiscard]] StepRecord record_of(const StepPlan& plan, const StepResult& result, const StepFacts& facts);

class StepLog {
 public:
  static constexpr std::size_t kSteps = 1024, kRows = 16384;

  /// `rows`: of all kept batches together.
  explicit StepLog(std::size_t steps = kSteps, std::size_t rows = kRows);
  void add(const StepRecord& record, std::span<const BatchRow> batch);
  /// The last `most` steps, oldest first.
  [[nodiscard]] std::vector<RecentStep> recent(std::size_t most) const;

 private:
  struct Entry {
    StepRecord record;
    std::uint64_t number;     // of the entry, from 0
    std::uint64_t first_row;  // number of the first row
  };
  [[nodiscard]] std::vector<BatchRow> batch_of(const Entry& entry) const;

  std::vector<Published<Entry>> entries_;
  std::vector<Published<BatchRow>> rows_;
  std::atomic<std::uint64_t> entries_written_{0};
  std::atomic<std::uint64_t> rows_begun_{0};  // rows below rows_begun_ - rows_.size() may be overwritten by now
};

}  // namespace octavo
