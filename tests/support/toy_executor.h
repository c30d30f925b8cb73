// An executor without a model. Its "KV" of a token is a hash of all tokens up to it; what a row reads through its block
// tables is compared with what its sequence should have stored there. So a wrong table, a block shared or freed too
// early, a missing copy or a wrong cache hit is seen at once, and what it samples depends on the known tokens only.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "engine/executor.h"
#include "kv/kv_types.h"
#include "sched/scheduler.h"

namespace octavo::test {

inline std::uint64_t toy_kv(std::uint64_t before, TokenId token) {
  return (before ^ static_cast<std::uint64_t>(token.value + 1)) * 0x9E3779B97F4A7C15U + 0x2545F491U;
}
inline TokenId toy_token(std::uint64_t kv) { return {static_cast<std::int32_t>((kv >> 40) % 50)}; }

/// The output that any schedule must come to.
inline std::vector<TokenId> toy_output(std::span<const TokenId> prompt, std::size_t count) {
  std::uint64_t kv = 0;
  for (TokenId t : prompt) kv = toy_kv(kv, t);
  std::vector<TokenId> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(toy_token(kv)), kv = toy_kv(kv, out.back());
  return out;
}

class ToyExecutor final : public Executor {
 public:
  ToyExecutor(const KvConfig& config, const Scheduler& scheduler)
      : config_(config),
        scheduler_(scheduler),
        cells_(std::size_t{config.num_blocks} * config.block_tokens),
        host_(std::size_t{config.host_blocks + 1} * config.block_tokens) {}

  /// How a row ends; called once per row. Default: all go on.
  std::function<RowEnd(const StepRow&)> end_of = [](const StepRow&) { return RowEnd::kGoesOn; };
  /// Whether a save or load goes wrong; called once per move. Default: never.
  std::function<bool(const BlockMove&)> move_fails = [](const BlockMove&) { return false; };
  /// How often each position of a sequence has had its logits computed.
  std::map<SeqId, std::vector<std::uint32_t>> logits;

  void run(const StepPlan& plan, StepResult& result) override {
    const char* fault = find_fault(plan);
    ASSERT_EQ(fault, nullptr) << fault;
    result.clear(), result.step = plan.step;
    for (SeqId id : plan.finished) kv_of_.erase(id);
    const auto slot = [&](HostSlot s) { return host_.data() + std::size_t{s.value} * config_.block_tokens; };
    for (const BlockMove& m : plan.ops.saves) {
      std::copy_n(block(m.block), config_.block_tokens, slot(m.slot));
      if (move_fails(m)) std::fill_n(slot(m.slot), config_.block_tokens, 0xBAD), result.failed_moves.push_back(m.seq);
    }
    for (const BlockCopy& c : plan.ops.copies) std::copy_n(block(c.from), config_.block_tokens, block(c.to));
    for (BlockId b : plan.ops.zeros) std::fill_n(block(b), config_.block_tokens, 0);

    std::vector<RowEnd> ends;
    std::set<BlockId> spoilt;
    for (const StepRow& row : plan.rows) ends.push_back(end_of(row));
    for (std::size_t r = 0; r < plan.rows.size(); ++r) store(plan, r, ends[r] == RowEnd::kFailed, spoilt);
    for (std::size_t r = 0; r < plan.rows.size(); ++r) {
      const StepRow& row = plan.rows[r];
      for (std::uint32_t g = 0; g < plan.num_groups; ++g) {
        for (BlockId b : plan.blocks_of(plan.table_of(r, {g}))) {
          if (spoilt.contains(b)) ends[r] = RowEnd::kFailed;
        }
      }
      const auto begin = static_cast<std::uint32_t>(result.tokens.size());
      if (ends[r] == RowEnd::kFailed) {
        result.rows.push_back({row.seq, row.first_pos, begin, 0, RowEnd::kFailed});
        continue;
      }
      read(plan, r);
      if (row.num_samples == 0 && ends[r] == RowEnd::kStopped) ends[r] = RowEnd::kGoesOn;
      result.rows.push_back({row.seq, row.end(), begin, row.num_samples, ends[r]});
      if (row.num_samples > 0) result.tokens.push_back(toy_token(kv_of_[row.seq][row.end().value - 1]));
      std::vector<std::uint32_t>& seen = logits[row.seq];
      seen.resize(std::max<std::size_t>(seen.size(), row.end().value));
      for (std::uint32_t i = 0; i < row.num_logits; ++i) ++seen[row.end().value - 1 - i];
    }
    for (const BlockMove& m : plan.ops.loads) {  // as late as can be
      std::copy_n(slot(m.slot), config_.block_tokens, block(m.block));
      if (move_fails(m)) std::fill_n(block(m.block), config_.block_tokens, 0xBAD), result.failed_moves.push_back(m.seq);
    }
  }

 private:
  std::uint64_t* block(BlockId b) { return cells_.data() + std::size_t{b.value} * config_.block_tokens; }

  std::uint64_t& cell(const StepPlan& plan, std::size_t row, std::uint32_t group, std::uint32_t pos) {
    const RowTable& t = plan.table_of(row, {group});
    return block(plan.blocks_of(t)[pos / config_.block_tokens - t.first_page])[pos % config_.block_tokens];
  }

  void store(const StepPlan& plan, std::size_t r, bool fails, std::set<BlockId>& spoilt) {
    const StepRow& row = plan.rows[r];
    const Sequence* q = scheduler_.find(row.seq);
    ASSERT_NE(q, nullptr);
    std::vector<std::uint64_t>& kv = kv_of_[row.seq];
    for (std::size_t i = kv.size(); i < q->known.size(); ++i) kv.push_back(toy_kv(i == 0 ? 0 : kv[i - 1], q->known[i]));
    ASSERT_TRUE(
        std::ranges::equal(plan.tokens_of(row), std::span(q->known).subspan(row.first_pos.value, row.num_tokens)));
    for (std::uint32_t g = 0; g < plan.num_groups; ++g) {
      const RowTable& t = plan.table_of(r, {g});
      for (std::uint32_t p = row.first_pos.value; p < row.end().value; ++p) {
        cell(plan, r, g, p) = fails ? 0xBAD : kv[p];
        if (fails) spoilt.insert(plan.blocks_of(t)[p / config_.block_tokens - t.first_page]);
      }
    }
  }

  void read(const StepPlan& plan, std::size_t r) {
    const StepRow& row = plan.rows[r];
    const std::vector<std::uint64_t>& kv = kv_of_[row.seq];
    for (std::uint32_t g = 0; g < plan.num_groups; ++g) {
      const std::uint32_t window = config_.groups[g].window_tokens, first = row.first_pos.value;
      for (std::uint32_t p = window == 0 || first < window ? 0 : first + 1 - window; p < row.end().value; ++p) {
        ASSERT_GE(p / config_.block_tokens, plan.table_of(r, {g}).first_page) << "a live page was given back";
        ASSERT_EQ(cell(plan, r, g, p), kv[p]) << "seq " << row.seq.value << " group " << g << " position " << p;
      }
    }
  }

  KvConfig config_;
  const Scheduler& scheduler_;
  std::vector<std::uint64_t> cells_;                   // [blocks, block_tokens]; groups differ in blocks only
  std::vector<std::uint64_t> host_;                    // [slots, block_tokens]
  std::map<SeqId, std::vector<std::uint64_t>> kv_of_;  // what each sequence should have stored, by position
};

}  // namespace octavo::test
