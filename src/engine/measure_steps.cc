#include "engine/measure_steps.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kChunk = 64, kSmallChunk = 16;  // the small one where a step of one token takes long already
constexpr std::uint32_t kDepth = 1024;
constexpr std::uint32_t kRows = 16;
constexpr std::uint32_t kRounds = 5, kCopies = 8;
constexpr Nanos kLongStep = std::chrono::milliseconds(50);
constexpr Nanos kEnough = std::chrono::milliseconds(500);
constexpr Nanos kUnknown{std::numeric_limits<double>::infinity()};

struct Shape {
  std::uint32_t rows = 1, first_pos = 0, tokens = 1;  // rows of so many tokens, each with logits at its end
};

class Steps {
 public:
  Steps(Model& model, KvStore& store, std::uint32_t num_blocks, const StepTime& time)
      : model_(model), store_(store), time_(time), groups_(static_cast<std::uint32_t>(store.groups().groups.size())) {
    pages_ = (num_blocks - 1) / groups_;
    // Memory that was never written reads as one page of zeros: from the cache, and too fast.
    const std::uint32_t positions = kDepth + kChunk;
    const std::uint32_t pages =
        std::max((positions - 1) / store.groups().block_tokens + 1, std::max(kRows, 2 * kCopies));
    pages_ = std::min(pages_, pages);
    for (std::uint32_t i = 0; i < pages_ * groups_; ++i) blocks_.push_back({i + 1});
    store_.zero(blocks_);
  }
  ~Steps() { store_.zero(blocks_); }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  [[nodiscard]] std::uint32_t positions() const { return pages_ * store_.groups().block_tokens; }
  [[nodiscard]] std::uint32_t pages() const { return pages_; }

  [[nodiscard]] StepWork work(const Shape& shape) const {
    StepWork sum;
    for (std::uint32_t r = 0; r < shape.rows; ++r) sum += time_.row(shape.first_pos, shape.tokens, 1);
    return sum;
  }

  [[nodiscard]] Nanos run(const Shape& shape) {
    tokens_.assign(std::size_t{shape.rows} * shape.tokens, TokenId{});
    positions_.clear(), rows_.clear(), logits_.clear();
    for (std::uint32_t r = 0; r < shape.rows; ++r) {
      for (std::uint32_t i = 0; i < shape.tokens; ++i) positions_.push_back(shape.first_pos + i);
      logits_.push_back((r + 1) * shape.tokens - 1);
    }
    const std::uint32_t blocks = (shape.first_pos + shape.tokens - 1) / store_.groups().block_tokens + 1;
    for (std::uint32_t g = 0; g < groups_; ++g) {
      for (std::uint32_t r = 0; r < shape.rows; ++r) {  // rows of several tokens or at depth come alone
        rows_.push_back({blocks_.data() + g * pages_ + r, 0, blocks, shape.first_pos, shape.tokens, r * shape.tokens});
      }
    }
    const auto begin = Clock::now();
    model_.forward({tokens_, positions_, rows_, shape.rows});
    (void)model_.logits(logits_);
    return Clock::now() - begin;
  }

  [[nodiscard]] Nanos copy_block() {
    const std::uint32_t count = std::min<std::uint32_t>(kCopies, static_cast<std::uint32_t>(blocks_.size()) / 2);
    if (count == 0) return Nanos(0);
    std::vector<BlockCopy> copies;
    for (std::uint32_t i = 0; i < count; ++i) copies.push_back({blocks_[i], blocks_[blocks_.size() - 1 - i]});
    const auto begin = Clock::now();
    store_.copy(copies);
    return Nanos(Clock::now() - begin) / count;
  }

 private:
  Model& model_;
  KvStore& store_;
  const StepTime& time_;
  std::uint32_t groups_, pages_ = 0;
  std::vector<BlockId> blocks_;  // [groups, pages]
  std::vector<TokenId> tokens_;
  std::vector<std::uint32_t> positions_, logits_;
  std::vector<KvRow> rows_;
};

}  // namespace

StepMeasurement measure_steps(Model& model, KvStore& store, std::uint32_t num_blocks, const ForwardLimits& limits,
                              const StepTime& time) {
  const auto begin = Clock::now();
  Steps steps(model, store, num_blocks, time);
  const std::uint32_t longest = std::min(limits.max_positions, steps.positions());
  const Nanos first = steps.run({});

  const std::uint32_t chunk = std::min({first > kLongStep ? kSmallChunk : kChunk, limits.max_tokens, longest});
  const std::uint32_t depth = std::min(kDepth, longest - chunk);
  const std::uint32_t rows = std::min({kRows, steps.pages(), limits.max_logit_rows, limits.max_tokens});
  std::vector<Shape> shapes = {{}, {1, 0, chunk}, {rows, 0, 1}};
  if (depth > 0) shapes.insert(shapes.end(), {{1, depth, 1}, {1, depth, chunk}});
  std::vector<Nanos> best(shapes.size(), kUnknown);
  StepMeasurement out;
  out.copy_per_block = kUnknown;
  for (std::uint32_t round = 0; round < kRounds && (round == 0 || Clock::now() - begin < kEnough); ++round) {
    for (std::size_t i = 0; i < shapes.size(); ++i) best[i] = std::min(best[i], steps.run(shapes[i]));
    out.copy_per_block = std::min(out.copy_per_block, steps.copy_block());
  }

  const auto timed = [&](std::size_t i) { return TimedWork{steps.work(shapes[i]), best[i]}; };
  StepSamples samples{timed(0), timed(1), timed(2), {}, {}};
  if (depth > 0) samples.deep_single = timed(3), samples.deep_chunk = timed(4);
  out.costs = fit_costs(samples);
  out.complete = chunk >= kSmallChunk && depth == kDepth && rows == kRows;
  return out;
}

}  // namespace octavo
