// One step of the engine as a value: what to move, what to compute, what to sample, who came and who left.
//
// Self-contained: all that addresses memory is in here, so a plan can be shipped to a rank, captured, edited (permute
// the rows: the bits must not change) and replayed, and the simulator prices exactly what would have run.
// Block tables are therefore copied in: 4 bytes per block, beside the kilobytes of it that the step must read.
// What a plan does not hold: sampling parameters. They are no matter of scheduling and live with the sampler, by SeqId.
//
// Every array holds trivially copyable records without padding, so bytes are canonical: equal plans have equal bytes.
// Memory: arrays keep their capacity through clear(). Threads: one holder at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/ids.h"
#include "kv/block_ops.h"
#include "octavo/result.h"

namespace octavo {

/// Positions [first_pos, first_pos + num_tokens) of one sequence; their ids are tokens[tokens_begin ...].
struct StepRow {
  SeqId seq;
  Pos first_pos;
  std::uint32_t tokens_begin;
  std::uint32_t num_tokens;   // >= 1
  std::uint32_t num_logits;   // trailing positions whose logits are wanted: 0 mid-prompt, 1 usually
  std::uint32_t num_samples;  // the last of those that sample a next token: 0 or 1
  std::uint32_t num_prompt;   // of num_tokens, how many are prompt: for metrics and prices

  [[nodiscard]] Pos end() const { return first_pos + num_tokens; }
};

/// One row in one KV group: blocks[blocks_begin + i] holds positions from (first_page + i) * block_tokens.
struct RowTable {
  std::uint32_t first_page;
  std::uint32_t blocks_begin;
  std::uint32_t num_blocks;
};

/// It runs from here on, with computed tokens that this plan need not compute.
struct Admission {
  SeqId seq;
  std::uint32_t cached_tokens;    // found in the prefix cache
  std::uint32_t forked_tokens;    // or shared by the sequence that it forked from
  std::uint32_t restored_tokens;  // or loaded from host memory: its first row comes with a later plan
  std::uint32_t resumed;          // 1: it ran before
};

/// Its blocks are gone and it waits; it will recompute, or its KV is loaded again.
struct Preemption {
  SeqId seq;
  std::uint32_t lost_tokens;   // computed tokens given up
  std::uint32_t saved_tokens;  // computed tokens kept in host memory
};

struct StepPlan {
  StepId step;
  std::uint32_t num_groups = 0;
  std::uint32_t block_tokens = 0;
  BlockOps ops;                  // first, see kv/block_ops.h
  std::vector<StepRow> rows;     // [rows], most urgent first
  std::vector<TokenId> tokens;   // [sum of num_tokens]
  std::vector<RowTable> tables;  // [rows, num_groups]
  std::vector<BlockId> blocks;   // [sum of num_blocks]
  std::vector<Admission> admitted;
  std::vector<Preemption> preempted;
  std::vector<SeqId> finished;  // since the last plan: the executor drops their state

  [[nodiscard]] bool empty() const { return rows.empty() && admitted.empty() && preempted.empty() && finished.empty(); }
  [[nodiscard]] std::span<const TokenId> tokens_of(const StepRow& r) const {
    return {tokens.data() + r.tokens_begin, r.num_tokens};
  }
  [[nodiscard]] const RowTable& table_of(std::size_t row, GroupId g) const {
    return tables[row * num_groups + g.value];
  }
  [[nodiscard]] std::span<const BlockId> blocks_of(const RowTable& t) const {
    return {blocks.data() + t.blocks_begin, t.num_blocks};
  }
};

/// Calls f(array) for every array, in wire order; new arrays are appended only. Everything generic is built on this.
template <class Plan, class F>
constexpr void for_each_array(Plan&& p, F&& f) {
  f(p.rows), f(p.tokens), f(p.tables), f(p.blocks), f(p.admitted), f(p.preempted), f(p.finished);
  f(p.ops.copies), f(p.ops.zeros), f(p.ops.saves), f(p.ops.loads);
}

template <class... T>
inline constexpr bool kNoPadding = (... &&
                                    (std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>));
static_assert(kNoPadding<StepRow, TokenId, RowTable, BlockId, Admission, Preemption, BlockCopy, BlockMove, SeqId>);

inline void clear(StepPlan& plan) {
  for_each_array(plan, [](auto& array) { array.clear(); });
}

/// nullptr, or a sentence naming the first broken invariant (used by tests, replay and every foreign plan):
///   rows tile the tokens; one sequence has one row; one table per row and group, covering where the row writes; a
///   block is written by one row and is not the null block; copies, zeros and loads write a block once and never a
///   copy's source; no row touches what is loaded; a host slot is saved to or loaded from, once.
[[nodiscard]] const char* find_fault(const StepPlan& plan);

/// Header, then counted arrays, in this machine's byte order.
void serialize(const StepPlan& plan, std::vector<std::byte>& out);
/// Replaces `plan`; a damaged or foreign one is refused by kCorrupt and the reason, and leaves it cleared.
[[nodiscard]] Result<> deserialize(std::span<const std::byte> bytes, StepPlan& plan);

}  // namespace octavo
