// Static and dynamic memory: every table of a sequence is a run of consecutive blocks.
#include "kv/kv_state.h"

namespace octavo {

/// A run of `want` pages in every group, or longer: up to max_model_len (static) or the next chunk (dynamic), where
/// that fits. False: nothing has changed.
bool KvManager::State::grow_run(SeqId seq, std::uint32_t want) {
  const bool fixed = config.memory == KvMemory::kStatic;
  const std::uint32_t chunk = chunk_pages();
  const std::uint32_t wished = fixed ? max_pages() : std::min((want + chunk - 1) / chunk * chunk, max_pages());
  const std::size_t height = journal.height(), held = device.held.size(), copies_before = pending.size();
  const std::uint64_t moved = moved_runs;
  for (const std::uint32_t pages : {wished, want}) {
    if (fixed && pages < wished) break;
    if (extend_or_move(device.seats.find_or_take(seq), pages)) return true;
    undo_to(height);
    device.held.resize(held), pending.resize(copies_before), moved_runs = moved;
  }
  return false;
}

bool KvManager::State::extend_or_move(std::uint32_t seat, std::uint32_t pages) {
  SeatTable& seats = device.seats;
  BlockPool& pool = device.pool;
  const std::uint32_t have = seats[seat].num_pages();
  for (std::uint32_t g = 0; g < num_groups; ++g) {
    const auto push_run = [&](std::uint32_t first, std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) {
        pool.allocate(BlockId{first + i});
        seats.push(seat, g, {first + i});
      }
    };
    const std::vector<BlockId>& blocks = seats[seat].tables[g].blocks;
    if (have > 0 && pool.is_free_run(blocks.back().value + 1, pages - have)) {
      push_run(blocks.back().value + 1, pages - have);
      continue;
    }
    const BlockId run = pool.find_run(pages);
    if (run == kNullBlock) return false;
    if (have > 0) {  // moves: at most once in a plan, so that no copy's target is another's source
      for (const PendingCopy& p : pending) {
        if (p.seat == seat && p.copy.to == blocks.front()) return false;
      }
      ++moved_runs;
    }
    for (std::uint32_t page = 0; page < have; ++page) {
      const BlockId to{run.value + page};
      pool.allocate(to);
      replace(seat, g, page, to);
    }
    push_run(run.value + have, pages - have);
  }
  return true;
}

}  // namespace octavo
