// What a step plan costs on a machine: measured curves, asked for the work that the plan holds.
//
//   weights    by tokens, between the measured numbers of them on a straight line, beyond the last one onward
//   head       by rows of logits, likewise; sampling included
//   attention  keys that single tokens read, and keys that tokens of full tiles read (sched/step_time.h counts them)
//   overhead   the step as such, and blocks copied, saved and loaded
//
// Values only. Threads: any.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "octavo/config.h"
#include "octavo/model_shape.h"
#include "octavo/profile.h"
#include "sched/step_plan.h"
#include "sched/step_time.h"

namespace octavo {

/// On straight lines between the points; before the first as there, beyond the last on the line of the last two. 0 at
/// 0.
[[nodiscard]] double on_curve(std::span<const std::uint32_t> at, std::span<const double> ns, double x);

/// Nanoseconds by what they go to.
struct PricedStep {
  double weights = 0, head = 0, attention = 0, overhead = 0;
  double bandwidth = 0;  // of those, spent waiting for memory: weights as one token reads them, keys of single tokens
  [[nodiscard]] double run() const { return weights + head + attention; }
  [[nodiscard]] double total() const { return run() + overhead; }
};

class StepPrice {
 public:
  /// `curve` has at least one point of tokens; see fault_of(). `block_bytes`: of a whole KV block.
  StepPrice(StepCurve curve, std::vector<WindowShare> windows, std::uint64_t block_bytes);

  [[nodiscard]] PricedStep of(const StepPlan& plan) const;
  [[nodiscard]] PricedStep of(const StepWork& work) const;
  /// The five costs that the engine would have fitted to steps of these prices: what its pacer starts from.
  [[nodiscard]] StepCosts costs() const;
  [[nodiscard]] double copy_block_ns() const { return copy_block_ns_; }
  [[nodiscard]] const StepCurve& curve() const { return curve_; }
  [[nodiscard]] const StepTime& counter() const { return counter_; }

 private:
  StepCurve curve_;
  double copy_block_ns_;
  StepTime counter_;  // its costs are not read
};

/// Memory to memory.
[[nodiscard]] double copy_byte_ns(const MachineProfile& profile);

/// From the machine part of a profile: see compose_curve.cc.
[[nodiscard]] Result<StepCurve> compose_step_curve(const MachineProfile& profile, const ModelShape& model,
                                                   const EngineConfig& config);

/// kUnsupported with the reason if this engine cannot run the model: only its memory is known.
[[nodiscard]] Result<> check_runnable(const ModelShape& model);

/// nullptr, or why the curve prices nothing: no points, not ascending, not finite, negative.
[[nodiscard]] const char* fault_of(const StepCurve& curve);

}  // namespace octavo
