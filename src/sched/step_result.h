// What a step came to. The executor fills it, the scheduler applies it; a value like the plan, and recorded beside it.
#pragma once
#include <vector>

#include "base/ids.h"
#include "kv/block_ops.h"

namespace octavo {

enum class RowEnd : std::uint32_t {
  kGoesOn,
  kStopped,  // the last sampled token ends the sequence (end-of-generation set, stop token, grammar complete)
  kFailed,   // nothing of this row may be trusted: its blocks are unpublished and the sequence recomputes
};

struct RowResult {
  SeqId seq;
  Pos computed_end;            // first position not computed: rejected drafts end earlier than the row did
  std::uint32_t tokens_begin;  // sampled ids are tokens[tokens_begin ... + num_tokens)
  std::uint32_t num_tokens;    // 0 mid-prompt
  RowEnd end;
};

struct MoveResult {
  TierMove move;
  std::uint32_t intact;  // 0: checksum, disk or peer failed
};

struct StepResult {
  StepId step;
  std::vector<RowResult> rows;    // in plan order
  std::vector<TokenId> tokens;    // [sum of num_tokens]
  std::vector<MoveResult> moves;  // kBefore moves of this plan, and kAlongside moves of any plan that ended by now
  Micros elapsed{};               // measured, or priced by the cost model

  void clear() { rows.clear(), tokens.clear(), moves.clear(); }
};

}  // namespace octavo
