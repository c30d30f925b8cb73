#include "capacity/lengths.h"

#include <algorithm>
#include <cmath>

#include "capacity/random.h"

namespace octavo {
namespace {

/// Points of the log-normal through `a` and `b`, at a few shares outside of them.
struct Tail {
  double z0, ln0, slope, most;
  Tail(const Quantile& a, const Quantile& b, double most) : z0(normal_quantile(a.share)), ln0(portable_log(a.tokens)) {
    slope = (portable_log(b.tokens) - ln0) / (normal_quantile(b.share) - z0);
    this->most = most;
  }
  [[nodiscard]] Quantile at(double share) const {
    const double tokens = portable_exp(std::min(ln0 + slope * (normal_quantile(share) - z0), 700.0));
    return {share, std::clamp(tokens, 1.0, most)};
  }
};

constexpr double kTailShares[] = {.001, .005, .01, .025, .05, .1, .15, .2, .25, .3, .35, .4, .45, .5};

}  // namespace

std::uint32_t length_at(const LengthCurve& curve, double share) {
  const auto above = std::ranges::lower_bound(curve, share, {}, [](const Quantile& q) { return q.share; });
  if (above == curve.begin()) return static_cast<std::uint32_t>(std::lround(curve.front().tokens));
  if (above == curve.end()) return static_cast<std::uint32_t>(std::lround(curve.back().tokens));
  const Quantile &from = above[-1], &to = *above;
  const double part = (share - from.share) / (to.share - from.share);
  const double grown = portable_exp(part * portable_log(to.tokens / from.tokens));
  return static_cast<std::uint32_t>(std::lround(from.tokens * grown));
}

LengthCurve fixed_curve(double tokens) { return {{0, tokens}, {1, tokens}}; }

LengthCurve lognormal_curve(double mean, double deviation, double least, double most) {
  constexpr int kPieces = 64;
  const double from = std::clamp((portable_log(least) - mean) / deviation, -4.0, 4.0);
  const double to = std::clamp((portable_log(most) - mean) / deviation, -4.0, 4.0);
  const double below = normal_share(from), within = normal_share(to) - below;
  LengthCurve curve;
  for (int i = 0; i <= kPieces; ++i) {
    const double z = from + (to - from) * i / kPieces;
    const double share = i == kPieces ? 1 : (normal_share(z) - below) / within;
    curve.push_back({share, std::clamp(portable_exp(mean + deviation * z), least, most)});
  }
  return curve;
}

LengthCurve quantile_curve(const std::vector<Quantile>& quantiles, double most) {
  LengthCurve curve;
  const Quantile &first = quantiles.front(), &last = quantiles.back();
  if (first.share > 0) {
    const Tail tail(first, quantiles[1].share < 1 ? quantiles[1] : Quantile{.9999, quantiles[1].tokens}, most);
    for (const double share : kTailShares) {
      if (share < first.share) curve.push_back(tail.at(share));
    }
    if (curve.empty()) curve.push_back(first);
    curve.front().share = 0;
  }
  curve.insert(curve.end(), quantiles.begin(), quantiles.end());
  if (last.share < 1) {
    const Quantile& before = quantiles[quantiles.size() - 2];
    const Tail tail(before.share > 0 ? before : Quantile{.0001, before.tokens}, last, most);
    for (auto share = std::rbegin(kTailShares); share != std::rend(kTailShares); ++share) {
      if (1 - *share > last.share) curve.push_back(tail.at(1 - *share));
    }
    if (curve.back().share == last.share) curve.push_back(last);
    curve.back().share = 1;
  }
  return curve;
}

}  // namespace octavo
