// One step of the engine as a value: what to move, what to compute, what to sample, who came and who left.
//
// Self-contained: all that addresses memory is in here, so a plan can be shipped to a rank, captured, edited (permute
// the rows: the bits must not change) and replayed, and the simulator prices exactly what would have run.
// Block tables are therefore copied in: 4 bytes per block, beside the kilobytes of it that the step must read.
// What a plan does not hold: sampling parameters. They are no matter of scheduling and live with the sampler, by SeqId.
//
// Every array holds trivially copyable records without padding, so bytes are canonical: equal plans have equal bytes.
// Memory: arrays are reserved once for the config's limits; clear() keeps capacity. Threads: one holder at a time.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/ids.h"
#include "kv/block_ops.h"

namespace octavo {

/// Positions [first_pos, first_pos + num_tokens) of one sequence; their ids are tokens[tokens_begin ...].
struct StepRow {
  SeqId seq;
  Pos first_pos;
  std::uint32_t tokens_begin;
  std::uint32_t num_tokens;  // >= 1
  std::uint32_t num_logits;  // trailing positions that sample: 0 mid-prompt, 1 usually, k+1 to verify k drafts
};

/// One row in one KV group: blocks[blocks_begin + i] holds positions from (first_page + i) * block_tokens.
struct RowTable {
  std::uint32_t first_page;
  std::uint32_t blocks_begin;
  std::uint32_t num_blocks;
};

struct Admission {
  SeqId seq;
  std::uint32_t cached_tokens;  // prefix hit: computed without computing
  std::uint32_t resumed;        // 1: it ran before
};

enum class Preempt : std::uint32_t { kRecompute, kSwap };

struct Preemption {
  SeqId seq;
  Preempt how;
  std::uint32_t lost_tokens;  // computed tokens given up, 0 when swapped
};

struct StepPlan {
  StepId step;
  std::uint32_t num_groups = 0;
  std::uint32_t block_tokens = 0;
  BlockOps ops;                  // first, see kv/block_ops.h for the order
  std::vector<StepRow> rows;     // [rows], most urgent first
  std::vector<TokenId> tokens;   // [sum of num_tokens]
  std::vector<RowTable> tables;  // [rows, num_groups]
  std::vector<BlockId> blocks;   // [sum of num_blocks]
  std::vector<Admission> admitted;
  std::vector<Preemption> preempted;
  std::vector<SeqId> finished;  // since the last plan: the executor drops their state

  [[nodiscard]] bool empty() const {
    return rows.empty() && preempted.empty() && finished.empty() && ops.saves.empty() && ops.loads.empty();
  }
  [[nodiscard]] std::span<const TokenId> tokens_of(const StepRow& r) const {
    return {tokens.data() + r.tokens_begin, r.num_tokens};
  }
  [[nodiscard]] const RowTable& table_of(std::size_t row, GroupId g) const {
    return tables[row * num_groups + g.value];
  }
};

/// Calls f(array) for every array, in wire order; new arrays are appended only. Everything generic is built on this.
template <class Plan, class F>
constexpr void for_each_array(Plan&& p, F&& f) {
  f(p.rows), f(p.tokens), f(p.tables), f(p.blocks), f(p.admitted), f(p.preempted), f(p.finished);
  f(p.ops.saves), f(p.ops.loads), f(p.ops.copies), f(p.ops.zeros);
}
inline constexpr std::size_t kNumPlanArrays = 11;

template <class... T>
inline constexpr bool kNoPadding = (... && std::has_unique_object_representations_v<T>);
static_assert(kNoPadding<StepRow, TokenId, RowTable, BlockId, Admission, Preemption, TierMove, BlockCopy, BlockRef>);

/// A plan under construction is a stack; a mark is its height, rewind pops to it. Pairs with KvMark.
using PlanMark = std::array<std::size_t, kNumPlanArrays>;
inline PlanMark mark_of(const StepPlan& plan) {
  PlanMark m{};
  for_each_array(plan, [&, i = 0](const auto& a) mutable { m[i++] = a.size(); });
  return m;
}
inline void rewind(StepPlan& plan, const PlanMark& m) {
  for_each_array(plan,
                 [&, i = 0](auto& a) mutable { a.erase(a.begin() + static_cast<std::ptrdiff_t>(m[i++]), a.end()); });
}
inline void clear(StepPlan& plan) { rewind(plan, PlanMark{}); }

/// nullptr, or a sentence naming the first broken invariant (used by tests, replay and every foreign plan).
[[nodiscard]] const char* find_fault(const StepPlan& plan);

void serialize(const StepPlan& plan, std::vector<std::byte>& out);                 // header, then counted arrays
[[nodiscard]] bool deserialize(std::span<const std::byte> bytes, StepPlan& plan);  // false: damaged or foreign

}  // namespace octavo
