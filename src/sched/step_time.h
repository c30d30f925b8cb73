// How long a step takes: a small model of its work, fitted once at load and corrected by every step that runs.
//
//   time = step + token * tokens + logit_row * logit_rows + chunk_key * chunk_keys + single_key * single_keys
//
// Keys are what attention reads: a token at depth 3,000 costs several at depth 0. The 16 tokens of a tile share what
// they read, a row of one token reads alone; so a key has two prices, and what a part of a tile costs lies between
// them. Windows bound what a layer reads.
//
// Pure arithmetic on values: no clock, no model; a simulator may use it. Nothing here touches a bit of any result.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace octavo {

using Nanos = std::chrono::duration<double, std::nano>;

/// What makes a step take time, as counts. Work of several rows adds up.
struct StepWork {
  double tokens = 0;       // through the weights
  double logit_rows = 0;   // through the output head
  double chunk_keys = 0;   // read by the tokens of full tiles, mean over the layers
  double single_keys = 0;  // read by tokens alone, mean over the layers
  friend constexpr bool operator==(const StepWork&, const StepWork&) = default;
  constexpr StepWork& operator+=(const StepWork& b) {
    tokens += b.tokens, logit_rows += b.logit_rows, chunk_keys += b.chunk_keys, single_keys += b.single_keys;
    return *this;
  }
  friend constexpr StepWork operator+(StepWork a, const StepWork& b) { return a += b; }
};

/// Nanoseconds of each unit of work, and of a step as such.
struct StepCosts {
  double step = 0, token = 0, logit_row = 0, chunk_key = 0, single_key = 0;
};

/// Work and how long it took.
struct TimedWork {
  StepWork work;
  Nanos time{};
};

/// The runs that tell the costs apart. Each is one step.
struct StepSamples {
  TimedWork single;                                  // one token, at the start of a sequence
  TimedWork chunk;                                   // a chunk there
  TimedWork batch;                                   // several rows of one token there, each with logits
  std::optional<TimedWork> deep_single, deep_chunk;  // the same at depth; none: the cache is too small to be deep
};

[[nodiscard]] StepCosts fit_costs(const StepSamples& samples);

/// Layers of one attention kind, as a share of all.
struct WindowShare {
  std::uint32_t window = 0;  // 0: full attention
  double share = 1;
};

/// Of layers with these windows (0: full attention).
[[nodiscard]] std::vector<WindowShare> window_shares(std::span<const std::uint32_t> windows);

class StepTime {
 public:
  StepTime(const StepCosts& costs, std::vector<WindowShare> windows);

  /// One row: tokens at [first_pos, first_pos + num_tokens), the last `num_logits` of them with logits.
  [[nodiscard]] StepWork row(std::uint32_t first_pos, std::uint32_t num_tokens, std::uint32_t num_logits) const;
  [[nodiscard]] Nanos predict(const StepWork& work) const { return step() + added(work); }
  /// What `work` adds to a step that runs anyway.
  [[nodiscard]] Nanos added(const StepWork& work) const;

  /// By how much steps may run over their prediction just now, >= 1. It follows slow steps at once and forgets them in
  /// some twenty: whoever promises a time divides by it.
  [[nodiscard]] double slack() const;

  /// A step of this work took so long. Each cost moves by its part in the prediction, a little and by a bounded ratio:
  /// a machine that got slower is followed within a hundred steps or so, one hiccup changes next to nothing.
  void observe(const StepWork& work, Nanos took);

  [[nodiscard]] StepCosts costs() const;
  [[nodiscard]] const std::vector<WindowShare>& windows() const { return windows_; }

 private:
  [[nodiscard]] Nanos step() const { return Nanos(costs_[0]); }

  std::array<double, 5> costs_;  // in the order of StepCosts
  double log_slack_ = 0;
  std::vector<WindowShare> windows_;
};

}  // namespace octavo
