#include "sched/step_time.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace octavo {
namespace {

constexpr std::uint32_t kTile = 16;  // tokens of a row that attention takes at a time

constexpr double kRate = 0.1;        // part of an error that one step corrects
constexpr double kMostRatio = 1.25;  // of observed and predicted: more counts as this, nearer to median than to mean
constexpr double kSlackUp = 0.5, kSlackDown = 0.05;  // parts of the way to a slower and to a faster step
constexpr double kMostSlack = 4;
constexpr double kLeastCost = 1e-3;  // ns: a cost never gets stuck at zero

/// Counts in the order of StepTime's costs.
std::array<double, 5> counts(const StepWork& w) { return {1, w.tokens, w.logit_rows, w.chunk_keys, w.single_keys}; }

double per(double nanos, double count) { return count > 0 ? std::max(nanos / count, 0.0) : 0; }

/// Keys that tokens at [first, first + count) read in a layer: sum of min(position + 1, window).
double keys_read(std::uint32_t first, std::uint32_t count, std::uint32_t window) {
  const auto up_to = [window](double n) {  // by tokens at [0, n)
    const double w = window == 0 ? n : std::min<double>(n, window);
    return w * (w + 1) / 2 + (n - w) * w;
  };
  return up_to(double{1} * first + count) - up_to(first);
}

}  // namespace

StepCosts fit_costs(const StepSamples& s) {
  StepCosts c;
  if (s.deep_single) {
    c.single_key =
        per((s.deep_single->time - s.single.time).count(), s.deep_single->work.single_keys - s.single.work.single_keys);
  }
  if (s.deep_chunk) {
    c.chunk_key =
        per((s.deep_chunk->time - s.chunk.time).count(), s.deep_chunk->work.chunk_keys - s.chunk.work.chunk_keys);
  }
  const double chunk = s.chunk.time.count() - c.chunk_key * s.chunk.work.chunk_keys;
  c.token = per(chunk - s.single.time.count(), s.chunk.work.tokens - s.single.work.tokens);
  const double rows = s.batch.work.logit_rows - s.single.work.logit_rows;
  c.logit_row = per((s.batch.time - s.single.time).count() - c.token * rows, rows);
  c.step =
      std::max(s.single.time.count() - c.token * s.single.work.tokens - c.logit_row * s.single.work.logit_rows, 0.0);
  return c;
}

std::vector<WindowShare> window_shares(std::span<const std::uint32_t> windows) {
  std::vector<WindowShare> shares;
  for (const std::uint32_t window : windows) {
    const auto same = std::ranges::find(shares, window, &WindowShare::window);
    WindowShare& share = same != shares.end() ? *same : shares.emplace_back(WindowShare{window, 0});
    share.share += 1.0 / static_cast<double>(windows.size());
  }
  return shares;
}

StepTime::StepTime(const StepCosts& c, std::vector<WindowShare> windows)
    : costs_{c.step, c.token, c.logit_row, c.chunk_key, c.single_key}, windows_(std::move(windows)) {
  for (double& cost : costs_) cost = std::max(cost, kLeastCost);
}

StepWork StepTime::row(std::uint32_t first_pos, std::uint32_t num_tokens, std::uint32_t num_logits) const {
  StepWork work{1.0 * num_tokens, 1.0 * num_logits, 0, 0};
  for (const WindowShare& w : windows_) {
    if (num_tokens == 1) {  // most rows: what follows comes to the same
      const std::uint32_t keys = w.window == 0 ? first_pos + 1 : std::min(first_pos + 1, w.window);
      work.single_keys += w.share * keys;
      continue;
    }
    for (std::uint32_t done = 0; done < num_tokens;) {
      // Full tiles together, then what is left, between the price of one token and that of a tile.
      const std::uint32_t left = num_tokens - done;
      const std::uint32_t count = left < kTile ? left : left / kTile * kTile;
      const double keys = w.share * keys_read(first_pos + done, count, w.window);
      const double filled = count >= kTile ? 1 : (count - 1.0) / (kTile - 1.0);
      work.chunk_keys += filled * keys * (count >= kTile ? 1 : 1.0 * kTile / count);
      work.single_keys += (1 - filled) * keys / count;
      done += count;
    }
  }
  return work;
}

Nanos StepTime::added(const StepWork& work) const {
  const std::array<double, 5> n = counts(work);
  double sum = 0;
  for (std::size_t i = 1; i < n.size(); ++i) sum += costs_[i] * n[i];
  return Nanos(sum);
}

void StepTime::observe(const StepWork& work, Nanos took) {
  const double predicted = predict(work).count();
  const double ratio = std::clamp(took.count() / predicted, 1 / kMostRatio, kMostRatio);
  const double over = std::log(std::clamp(took.count() / predicted, 1.0, kMostSlack));
  log_slack_ += (over > log_slack_ ? kSlackUp : kSlackDown) * (over - log_slack_);
  const double correction = kRate * std::log(ratio);
  const std::array<double, 5> n = counts(work);
  for (std::size_t i = 0; i < n.size(); ++i) {
    const double part = costs_[i] * n[i] / predicted;
    costs_[i] = std::max(costs_[i] * std::exp(correction * part), kLeastCost);
  }
}

double StepTime::slack() const { return std::exp(log_slack_); }

StepCosts StepTime::costs() const { return {costs_[0], costs_[1], costs_[2], costs_[3], costs_[4]}; }

}  // namespace octavo
