#include "capacity/step_price.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace octavo {
double on_curve(std::span<const std::uint32_t> at, std::span<const double> ns, double x) {
  if (x <= 0 || at.empty()) return 0;
  if (x <= at.front()) return ns.front();
  if (at.size() == 1) return ns.front() * x / at.front();
  std::size_t i = 1;
  while (i + 1 < at.size() && x > at[i]) ++i;
  const double part = (x - at[i - 1]) / (at[i] - at[i - 1]);
  return std::max(ns[i - 1] + part * (ns[i] - ns[i - 1]), 0.0);
}

const char* fault_of(const StepCurve& c) {
  const auto ascends = [](const std::vector<std::uint32_t>& at, const std::vector<double>& ns) {
    return at.size() == ns.size() && (at.empty() || at.front() > 0) &&
           std::ranges::adjacent_find(at, std::ranges::greater_equal()) == at.end() &&
           std::ranges::all_of(ns, [](double n) { return std::isfinite(n) && n >= 0; });
  };
  if (c.tokens.empty()) return "no step was measured";
  if (!ascends(c.tokens, c.ns)) return "tokens do not ascend, or a time is not a number";
  if (!ascends(c.logit_rows, c.logit_ns)) return "logit rows do not ascend, or a time is not a number";
  for (const double n : {c.single_key_ns, c.chunk_key_ns, c.row_ns, c.step_ns, c.copy_byte_ns}) {
    if (!std::isfinite(n) || n < 0) return "a cost is negative or not a number";
  }
  return nullptr;
}

StepPrice::StepPrice(StepCurve curve, std::vector<WindowShare> windows, std::uint64_t block_bytes)
    : curve_(std::move(curve)),
      copy_block_ns_(curve_.copy_byte_ns * static_cast<double>(block_bytes)),
      counter_({}, std::move(windows)) {}

PricedStep StepPrice::of(const StepWork& work) const {
  PricedStep out;
  out.weights = on_curve(curve_.tokens, curve_.ns, work.tokens);
  out.head = on_curve(curve_.logit_rows, curve_.logit_ns, work.logit_rows);
  const double alone = curve_.single_key_ns * work.single_keys;
  out.attention = alone + curve_.chunk_key_ns * work.chunk_keys;
  out.overhead = curve_.step_ns;
  out.bandwidth = std::min(out.weights, curve_.ns.front()) + alone;
  if (!curve_.logit_ns.empty()) out.bandwidth += std::min(out.head, curve_.logit_ns.front());
  return out;
}

PricedStep StepPrice::of(const StepPlan& plan) const {
  StepWork work;
  for (const StepRow& row : plan.rows) work += counter_.row(row.first_pos.value, row.num_tokens, row.num_logits);
  PricedStep out = of(work);
  out.overhead += curve_.row_ns * static_cast<double>(plan.rows.size());
  out.overhead +=
      copy_block_ns_ * static_cast<double>(plan.ops.saves.size() + plan.ops.copies.size() + plan.ops.loads.size());
  return out;
}

StepCosts StepPrice::costs() const {
  const auto timed = [&](std::uint32_t rows, std::uint32_t first, std::uint32_t tokens) {
    StepWork work;
    for (std::uint32_t i = 0; i < rows; ++i) work += counter_.row(first, tokens, 1);
    return TimedWork{work, Nanos(of(work).run())};
  };
  // The very shapes that the engine times at load.
  return fit_costs({timed(1, 0, 1), timed(1, 0, 64), timed(16, 0, 1), timed(1, 1024, 1), timed(1, 1024, 64)});
}

}  // namespace octavo
