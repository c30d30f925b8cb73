// Sequences that take over other sequences' blocks (fork), or leave the device and come back (swap).
#include "base/check.h"
#include "kv/kv_state.h"

namespace octavo {

bool KvManager::can_fork(SeqId parent, Pos shared) const {
  const State& s = *state_;
  const std::uint32_t from = s.device.seats.find(parent);
  if (!s.is_paged() || from == SeatTable::kNone || s.device.seats[from].tokens < shared.value) return false;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    if (s.device.seats[from].tables[g].first_page > s.first_page(g, shared.value)) return false;  // the window moved on
  }
  return true;
}

bool KvManager::fork(SeqId parent, SeqId seq, Pos shared, std::uint32_t tokens, std::uint32_t spare) {
  State& s = *state_;
  OCTAVO_CHECK(open() && !holds(seq) && can_fork(parent, shared), "a newcomer forks from computed tokens");
  const std::uint32_t pages = pages_of(shared.value, s.config.block_tokens);
  std::uint32_t pinned = 0;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) pinned += pages - s.first_page(g, shared.value);
  const std::uint32_t copied = shared.value % s.config.block_tokens == 0 ? 0 : s.num_groups;
  const std::uint64_t takes = blocks_for(tokens) - std::min(blocks_for(tokens), pinned) + std::uint64_t{copied};
  if (takes + spare > s.device.pool.num_free() || s.refuses()) return false;
  const std::uint32_t seat = s.device.seats.find_or_take(seq);
  const Seat& from = s.device.seats[s.device.seats.find(parent)];
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const std::uint32_t first = s.first_page(g, shared.value);
    for (std::uint32_t page = 0; page < pages; ++page) {
      const BlockId block = page < first ? kNullBlock : from.tables[g].blocks[page];
      if (block != kNullBlock) s.device.pool.pin(block);
      s.device.seats.push(seat, g, block);
    }
    s.device.seats.set_first_page(seat, g, first);
  }
  const std::uint32_t full = shared.value / s.config.block_tokens;
  s.device.seats.set_settled(seat, pages, std::min(from.published, full), shared.value);
  return true;
}

bool KvManager::swapped(SeqId seq) const {
  if (!state_->host) return false;
  const std::uint32_t seat = state_->host->seats.find(seq);
  return seat != SeatTable::kNone && state_->host->seats[seat].num_pages() > 0;
}

bool KvManager::swap_out(SeqId seq) {
  State& s = *state_;
  OCTAVO_CHECK(open(), "planning calls need an open plan");
  const std::uint32_t seat = s.device.seats.find(seq);
  if (!s.host || seat == SeatTable::kNone || swapped(seq) || s.host->seats.full()) return false;
  const Seat& from = s.device.seats[seat];
  const std::uint32_t pages = pages_of(from.tokens, s.config.block_tokens);
  std::uint32_t live = 0;
  for (const BlockTable& t : from.tables) live += pages - t.first_page;
  if (live == 0 || live > s.host->pool.num_free() || s.refuses()) return false;

  const std::uint32_t to = s.host->seats.find_or_take(seq);
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const BlockTable& table = from.tables[g];
    for (std::uint32_t page = 0; page < pages; ++page) {
      if (page < table.first_page) {
        s.host->seats.push(to, g, kNullBlock);
        continue;
      }
      BlockId block = table.blocks[page];
      for (const State::PendingCopy& p : s.pending) {  // not copied yet: the plan's saves come first
        if (p.copy.to == block) block = p.copy.from;
      }
      const BlockId slot = s.host->pool.allocate();
      s.host->seats.push(to, g, slot);
      s.ops->saves.push_back({seq, block, {slot.value}});
    }
    s.host->seats.set_first_page(to, g, table.first_page);
  }
  s.host->seats.set_settled(to, pages, 0, from.tokens);
  s.release(s.device, seq);
  return true;
}

bool KvManager::swap_in(SeqId seq, std::uint32_t tokens, std::uint32_t spare) {
  State& s = *state_;
  OCTAVO_CHECK(open() && swapped(seq) && !holds(seq), "what was swapped out comes back once");
  const std::uint32_t from = s.host->seats.find(seq);
  const Seat& kept = s.host->seats[from];
  const std::uint32_t pages = kept.num_pages();
  const std::uint64_t takes = std::max(blocks_for(tokens), kept.num_blocks());
  if (takes + spare > s.device.pool.num_free() || s.refuses()) return false;
  if (!s.is_paged() && !s.grow_run(seq, pages_of(tokens, s.config.block_tokens))) return false;
  const std::uint32_t seat = s.device.seats.find_or_take(seq);
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const BlockTable& table = kept.tables[g];
    for (std::uint32_t page = 0; page < pages; ++page) {
      const bool live = page >= table.first_page;
      if (s.is_paged()) s.device.seats.push(seat, g, live ? s.device.pool.allocate() : kNullBlock);
      if (!live) continue;
      const BlockId slot = table.blocks[page];
      s.ops->loads.push_back({seq, s.device.seats[seat].tables[g].blocks[page], {slot.value}});
      s.host->pool.pin(slot);
      s.host->held.push_back(slot);
    }
    s.device.seats.set_first_page(seat, g, table.first_page);
  }
  s.device.seats.set_settled(seat, pages, 0, kept.tokens);
  s.release(*s.host, seq);
  return true;
}

}  // namespace octavo
