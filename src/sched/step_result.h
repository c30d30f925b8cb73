// What a step came to. The executor fills it, the scheduler applies it; a value like the plan, and recorded beside it.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace octavo {

enum class RowEnd : std::uint32_t {
  kGoesOn,
  kStopped,  // the last sampled token ends the sequence (end-of-generation set, stop token)
  kFailed,   // nothing of this row may be trusted: its blocks are not published and the sequence recomputes
};

struct RowResult {
  SeqId seq;
  Pos computed_end;            // first position not computed
  std::uint32_t tokens_begin;  // sampled ids are tokens[tokens_begin ... + num_tokens)
  std::uint32_t num_tokens;    // as many as the row's num_samples; 0 if it failed
  RowEnd end;
};

struct StepResult {
  StepId step;
  std::vector<RowResult> rows;      // any order
  std::vector<TokenId> tokens;      // [sum of num_tokens]
  std::vector<SeqId> failed_moves;  // a save or load of theirs failed: what is kept of them on the host is worthless

  void clear() { rows.clear(), tokens.clear(), failed_moves.clear(); }
};

}  // namespace octavo
