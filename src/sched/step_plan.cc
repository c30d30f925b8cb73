#include "sched/step_plan.h"

#include <algorithm>
#include <cstring>

namespace octavo {
namespace {

constexpr std::uint64_t kPlanMagic = 0x6F6374706C616E32U;  // changes with the records

template <class T>
bool has_duplicates(std::vector<T>& values) {
  std::ranges::sort(values);
  return std::ranges::adjacent_find(values) != values.end();
}

const char* find_row_fault(const StepPlan& p) {
  if (p.tables.size() != p.rows.size() * p.num_groups) return "one table per row and group";
  std::uint64_t tokens = 0;
  std::vector<SeqId> seqs;
  for (const StepRow& r : p.rows) {
    if (r.num_tokens == 0 || r.num_logits > r.num_tokens || r.num_prompt > r.num_tokens)
      return "a row counts its tokens";
    if (r.num_samples > 1 || r.num_samples > r.num_logits) return "a row samples at most once, from its logits";
    if (r.tokens_begin != tokens) return "rows tile the tokens";
    tokens += r.num_tokens;
    seqs.push_back(r.seq);
  }
  if (tokens != p.tokens.size()) return "rows tile the tokens";
  for (TokenId t : p.tokens) {
    if (t.value < 0) return "every token is known";
  }
  return has_duplicates(seqs) ? "one row per sequence" : nullptr;
}

/// Tables lie inside the blocks and cover what their row writes. Collects the blocks written.
const char* find_table_fault(const StepPlan& p, std::vector<BlockId>& written) {
  for (std::size_t i = 0; i < p.rows.size(); ++i) {
    const std::uint64_t begin = p.rows[i].first_pos.value, end = begin + p.rows[i].num_tokens;
    if (end > ~0U) return "positions are 32-bit";
    for (std::uint32_t g = 0; g < p.num_groups; ++g) {
      const RowTable& t = p.table_of(i, {g});
      if (std::uint64_t{t.blocks_begin} + t.num_blocks > p.blocks.size()) return "tables lie inside the blocks";
      const std::uint64_t first_page = begin / p.block_tokens, last_page = (end - 1) / p.block_tokens;
      if (first_page < t.first_page || last_page >= std::uint64_t{t.first_page} + t.num_blocks) {
        return "a row owns where it writes";
      }
      const auto blocks = p.blocks_of(t);
      if (std::ranges::find(blocks, kNullBlock) != blocks.end()) return "a live page is a block";
      const auto fresh = blocks.subspan(first_page - t.first_page, last_page - first_page + 1);
      written.insert(written.end(), fresh.begin(), fresh.end());
    }
  }
  return has_duplicates(written) ? "one row writes a block" : nullptr;
}

const char* find_ops_fault(const StepPlan& p) {
  std::vector<BlockId> written = p.ops.zeros;
  for (const BlockCopy& c : p.ops.copies) written.push_back(c.to);
  for (const BlockMove& m : p.ops.loads) written.push_back(m.block);
  if (has_duplicates(written)) return "one operation writes a block";
  if (!written.empty() && written.front() == kNullBlock) return "the null block is never written";
  for (const BlockCopy& c : p.ops.copies) {
    if (std::ranges::binary_search(written, c.from)) return "no operation writes a copy's source";
  }
  for (const BlockMove& m : p.ops.loads) {
    if (std::ranges::find(p.blocks, m.block) != p.blocks.end()) return "no row touches what is loaded";
  }
  std::vector<HostSlot> slots;
  for (const BlockMove& m : p.ops.saves) slots.push_back(m.slot);
  for (const BlockMove& m : p.ops.loads) slots.push_back(m.slot);
  if (has_duplicates(slots)) return "a host slot is used once";
  return nullptr;
}

}  // namespace

const char* find_fault(const StepPlan& p) {
  if (!p.rows.empty() && (p.num_groups == 0 || p.block_tokens == 0)) return "rows need groups and blocks";
  if (const char* fault = find_row_fault(p)) return fault;
  std::vector<BlockId> written;
  if (const char* fault = find_table_fault(p, written)) return fault;
  return find_ops_fault(p);
}

void serialize(const StepPlan& plan, std::vector<std::byte>& out) {
  out.clear();
  const auto put = [&](const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    out.insert(out.end(), from, from + bytes);
  };
  put(&kPlanMagic, sizeof kPlanMagic);
  put(&plan.step, sizeof plan.step);
  put(&plan.num_groups, sizeof plan.num_groups), put(&plan.block_tokens, sizeof plan.block_tokens);
  for_each_array(plan, [&](const auto& array) {
    const std::uint64_t count = array.size();
    put(&count, sizeof count);
    if (count > 0) put(array.data(), count * sizeof array[0]);
  });
}

Result<> deserialize(std::span<const std::byte> in, StepPlan& plan) {
  clear(plan);
  const auto get = [&](void* data, std::size_t bytes) {
    if (bytes > in.size()) return false;
    if (bytes > 0) std::memcpy(data, in.data(), bytes);
    in = in.subspan(bytes);
    return true;
  };
  std::uint64_t magic = 0;
  bool whole = get(&magic, sizeof magic) && magic == kPlanMagic;
  whole = whole && get(&plan.step, sizeof plan.step);
  whole = whole && get(&plan.num_groups, sizeof plan.num_groups) && get(&plan.block_tokens, sizeof plan.block_tokens);
  for_each_array(plan, [&](auto& array) {
    std::uint64_t count = 0;
    whole = whole && get(&count, sizeof count) && count <= in.size() / sizeof array[0];
    if (!whole) return;
    array.resize(count);
    whole = get(array.data(), count * sizeof array[0]);
  });
  const char* fault = !whole || !in.empty() ? "it is not a whole plan of this version" : find_fault(plan);
  if (fault == nullptr) return Ok{};
  clear(plan);
  return Error{ErrorCode::kCorrupt, std::string("step plan: ") + fault, "step plan"};
}

}  // namespace octavo
