// One sequence as the scheduler knows it: known tokens, chased by computed ones. There is no prefill or decode phase.
//
//   kWaiting -> kRunning -> kFinished          kRunning -> kWaiting (preempted: computed = 0)
//   any      -> kFinished (stop, length, abort, deadline, error)
// A forked sequence waits until the one it forks from has computed the prompt that they share, if that one runs at all.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "kv/kv_types.h"

namespace octavo {

enum class SeqState : std::uint8_t { kWaiting, kRunning, kFinished };
enum class Finish : std::uint8_t { kNone, kStop, kLength, kAbort, kDeadline, kError };

struct SeqLimits {
  std::uint32_t max_new_tokens = 16;  // 0: the prompt is computed and that is all
  std::int32_t priority = 0;          // lower is served first
  Micros deadline{Micros::max()};     // absolute
  bool prompt_logits = false;         // logits at every prompt position, each once; reads no prefix cache
  std::string cache_salt;             // only sequences of equal salt share cached blocks
};

/// Place in every order: served first from the front, preempted first from the back. Two ranks are never equal.
struct Rank {
  std::int64_t urgency = 0;  // lower is served first
  Micros arrival{};
  SeqId id;
  friend constexpr auto operator<=>(const Rank&, const Rank&) = default;
};

struct Sequence {
  SeqId id;
  std::optional<SeqId> parent;  // forked from, with an equal prompt
  SeqState state = SeqState::kWaiting;
  Finish finish = Finish::kNone;
  SeqLimits limits;
  Micros arrival{};
  Rank rank;
  std::vector<TokenId> known;    // prompt, then output; reserved for prompt + max_new_tokens at add()
  BlockHash root{};              // parent of the first block's name
  std::vector<BlockHash> chain;  // one per full block of `known`, if prefixes are cached; reserved alike
  std::uint32_t prompt_tokens = 0;
  std::uint32_t computed = 0;       // by committed plans
  std::uint32_t processed = 0;      // confirmed by results; computed - processed = in flight
  std::uint32_t saved = 0;          // while swapped out: what is computed of it, in host memory
  std::uint32_t logits_given = 0;   // prompt positions whose logits have been delivered (prompt_logits)
  std::uint32_t cached_tokens = 0;  // of the prompt, not computed but found or shared when it was first admitted
  std::uint32_t preemptions = 0;
  std::uint32_t failures = 0;  // rows that came back failed

  [[nodiscard]] std::uint32_t length() const { return static_cast<std::uint32_t>(known.size()); }
  [[nodiscard]] std::uint32_t todo() const { return length() - computed; }
  [[nodiscard]] std::uint32_t outputs() const { return length() - prompt_tokens; }
  [[nodiscard]] SeqTokens tokens() const { return {known, chain, root}; }
};

using Sequences = std::unordered_map<std::uint64_t, Sequence>;  // by SeqId; nodes do not move

}  // namespace octavo
