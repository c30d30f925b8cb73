// One sequence as the scheduler knows it: known tokens, chased by computed ones. There is no prefill or decode phase.
//
//   kWaiting -> kRunning -> kFinished          kRunning -> kWaiting (preempted by recompute: computed = 0)
//   kRunning -> kSwapped -> kRunning           any      -> kFinished (stop, length, abort, deadline, error)
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "kv/kv_types.h"

namespace octavo {

enum class SeqState : std::uint8_t { kWaiting, kRunning, kSwapped, kFinished };
enum class Finish : std::uint8_t { kNone, kStop, kLength, kAbort, kDeadline, kError };

struct SeqLimits {
  std::uint32_t max_new_tokens = 16;
  std::int32_t priority = 0;       // lower is served first
  Micros deadline{Micros::max()};  // absolute
};

struct Sequence {
  SeqId id;
  SeqState state = SeqState::kWaiting;
  Finish finish = Finish::kNone;
  SeqLimits limits;
  Micros arrival{};
  std::vector<TokenId> known;    // prompt, then output; reserved for prompt + max_new_tokens at add()
  std::vector<BlockHash> chain;  // one per full block of `known`; reserved alike
  std::uint32_t prompt_tokens = 0;
  std::uint32_t computed = 0;   // by committed plans
  std::uint32_t processed = 0;  // confirmed by results; computed - processed = in flight
  std::uint32_t preemptions = 0;

  [[nodiscard]] std::uint32_t todo() const { return static_cast<std::uint32_t>(known.size()) - computed; }
  [[nodiscard]] std::uint32_t outputs() const { return static_cast<std::uint32_t>(known.size()) - prompt_tokens; }
  [[nodiscard]] SeqTokens tokens() const { return {known, chain}; }
};

}  // namespace octavo
