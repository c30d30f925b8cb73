// Curves of step costs: fitted to timed steps, or composed from what single kernels were measured to take.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "capacity/step_price.h"
#include "octavo/profile.h"
#include "octavo/simulate.h"
#include "sched/step_time.h"

namespace octavo {
namespace {

/// Hiccups of a machine are no rule. Of a list that is not empty.
double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

constexpr std::size_t kEnough = 2;  // samples, to be believed where others have as many

/// Leaves out what was timed once only, unless all was.
template <class Key, class Value>
void keep_enough(std::map<Key, std::vector<Value>>& groups) {
  const auto enough = [](const auto& group) { return group.second.size() >= kEnough; };
  if (std::ranges::any_of(groups, enough)) std::erase_if(groups, [&](const auto& group) { return !enough(group); });
}

/// What one more of something costs: samples at few places of it, compared within groups that are equal otherwise.
class Slope {
 public:
  void add(std::uint32_t group, double place, double value) {
    places_[{group, std::llround(place / kPlace)}].push_back({place, value});
  }
  /// Of the straight lines nearest to the means at each place, one slope for all groups; at least 0.
  [[nodiscard]] double fit() const {
    std::map<std::uint32_t, std::vector<Point>> groups;
    for (const auto& [at, points] : places_) {
      std::vector<double> x, y;
      for (const Point& p : points) x.push_back(p.x), y.push_back(p.y);
      groups[at.first].push_back({median(std::move(x)), median(std::move(y))});
    }
    double xx = 0, xy = 0;
    for (const auto& [group, points] : groups) {
      Point mean{0, 0};
      for (const Point& p : points) mean.x += p.x / points.size(), mean.y += p.y / points.size();
      for (const Point& p : points) xx += (p.x - mean.x) * (p.x - mean.x), xy += (p.x - mean.x) * (p.y - mean.y);
    }
    return xx > 0 ? std::max(xy / xx, 0.0) : 0;
  }

 private:
  static constexpr double kPlace = 64;  // keys, or whatever: nearer ones are one place
  struct Point {
    double x, y;
  };
  std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<Point>> places_;
};

/// Timed steps by what they tell.
struct Sorted {
  struct Sample {
    StepWork work;
    double run = 0, overhead = 0;
  };
  std::vector<Sample> decode;                          // one token in every row
  std::map<std::uint32_t, std::vector<Sample>> chunk;  // one row, by its tokens

  Sorted(const StepTime& counter, std::span<const TimedStep> steps) {
    for (const TimedStep& step : steps) {
      Sample sample{{}, step.run_ns, std::max(step.step_ns - step.run_ns, 0.0)};
      bool single = !step.rows.empty();
      for (const TimedStep::Row& row : step.rows) {
        sample.work += counter.row(row.first_position, row.tokens, row.logits);
        single = single && row.tokens == 1;
      }
      if (step.rows.size() == 1) chunk[step.rows.front().tokens].push_back(sample);
      if (single) decode.push_back(sample);
    }
    keep_enough(chunk);
  }
};

}  // namespace

Result<StepCurve> fit_step_curve(std::span<const std::uint32_t> windows, double head_share,
                                 std::span<const TimedStep> steps) {
  const StepTime counter({}, window_shares(windows));
  const Sorted sorted(counter, steps);
  if (sorted.chunk.empty()) {
    return Error{ErrorCode::kInvalidArgument, "no step of a single row was timed: nothing can be fitted", "steps"};
  }
  StepCurve out;
  Slope single, chunk;
  for (const auto& [tokens, samples] : sorted.chunk) {
    if (tokens == 1) continue;
    for (const Sorted::Sample& s : samples) chunk.add(tokens, s.work.chunk_keys, s.run);
  }
  for (const Sorted::Sample& s : sorted.decode) {
    single.add(static_cast<std::uint32_t>(s.work.tokens), s.work.single_keys, s.run);
  }
  out.single_key_ns = single.fit();
  out.chunk_key_ns = chunk.fit();
  const auto bare = [&](const Sorted::Sample& s) {
    return std::max(s.run - out.single_key_ns * s.work.single_keys - out.chunk_key_ns * s.work.chunk_keys, 0.0);
  };

  // One row of logits: the head's part of what one token reads. What is taken off here is added by the head's curve.
  double head = 0;
  for (const auto& [tokens, samples] : sorted.chunk) {
    std::vector<double> runs;
    for (const Sorted::Sample& s : samples) {
      runs.push_back(bare(s));
    }
    if (runs.empty()) continue;
    if (out.tokens.empty()) head = median(runs) * head_share / std::max(tokens, 1U);
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = std::max(runs[i] - head * samples[i].work.logit_rows, 0.0);
    out.tokens.push_back(tokens);
    out.ns.push_back(median(runs));
  }

  std::map<std::uint32_t, std::vector<double>> rows;
  std::map<std::uint32_t, std::vector<double>> overhead;
  for (const Sorted::Sample& s : sorted.decode) {
    const auto n = static_cast<std::uint32_t>(s.work.tokens);
    rows[n].push_back(std::max(bare(s) - on_curve(out.tokens, out.ns, n), 0.0));
    overhead[n].push_back(s.overhead);
  }
  keep_enough(rows);
  keep_enough(overhead);
  for (const auto& [n, samples] : rows) {
    out.logit_rows.push_back(n);
    out.logit_ns.push_back(median(samples));
  }
  if (rows.empty()) {
    out.logit_rows = {1}, out.logit_ns = {head};
    return out;
  }
  const double least = median(overhead.begin()->second), most = median(overhead.rbegin()->second);
  const double more = overhead.rbegin()->first - overhead.begin()->first;
  out.row_ns = more > 0 ? std::max((most - least) / more, 0.0) : 0;
  out.step_ns = std::max(least - out.row_ns * overhead.begin()->first, 0.0);
  return out;
}

Result<StepCosting> step_curve(const MachineProfile& profile, const ModelShape& model, const EngineConfig& config) {
  if (Result<> runs = check_runnable(model); !runs) return std::move(runs).error();
  for (const ModelProfile& own : profile.models) {
    if (own.name == model.name && own.weights_bytes == model.weights_bytes &&
        own.numerics == numerics_name(config.numerics) && own.kv_type == kv_type_name(config.kv_type)) {
      StepCosting out{own.steps, true};
      if (out.curve.copy_byte_ns == 0) out.curve.copy_byte_ns = copy_byte_ns(profile);
      return out;
    }
  }
  OCTAVO_TRY(StepCurve curve, compose_step_curve(profile, model, config));
  return StepCosting{std::move(curve), false};
}

}  // namespace octavo
