// Inside of the KV manager, shared by its files: kv_manager.cc (plans, pages, names), kv_runs.cc (consecutive blocks),
// kv_moves.cc (fork, swap).
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "kv/event_log.h"
#include "kv/journal.h"
#include "kv/kv_manager.h"

namespace octavo {

inline std::uint32_t pages_of(std::uint32_t tokens, std::uint32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

struct KvManager::State {
  /// Blocks of one kind, and who holds them.
  struct Books {
    Books(Space space, std::uint32_t num_blocks, std::uint32_t num_seats, const KvConfig& c, State& s)
        : pool(space, num_blocks, c.block_tokens, space == Space::kDevice && c.prefix_caching, s.journal, s.events),
          seats(space, num_seats, s.num_groups, pages_of(c.max_model_len, c.block_tokens), s.journal) {}
    BlockPool pool;
    SeatTable seats;
    std::vector<BlockId> held;  // one owner more until the plan commits: sources of copies and loads
  };
  /// A block that took another's place in a table. It becomes an operation once its row is settled.
  struct PendingCopy {
    std::uint32_t seat;
    BlockCopy copy;
  };

  explicit State(const KvConfig& c)
      : config(c),
        num_groups(static_cast<std::uint32_t>(c.groups.size())),
        events(c.events),
        device(Space::kDevice, c.num_blocks, 2 * c.max_seqs, c, *this) {
    if (c.host_blocks > 0) host.emplace(Space::kHost, c.host_blocks + 1, 2 * c.max_seqs, c, *this);
  }

  KvConfig config;
  std::uint32_t num_groups;
  Journal journal;
  EventLog events;
  Books device;
  std::optional<Books> host;
  BlockOps* ops = nullptr;  // of the open plan
  KvMark bottom;            // where it began
  std::vector<PendingCopy> pending;
  std::uint64_t hit_tokens = 0, copies = 0, moved_runs = 0;
  std::uint64_t refuse_after = 0;  // > 0: that many calls until one that takes blocks is refused

  [[nodiscard]] bool is_paged() const { return config.memory == KvMemory::kPaged; }
  [[nodiscard]] std::uint32_t max_pages() const { return pages_of(config.max_model_len, config.block_tokens); }
  [[nodiscard]] std::uint32_t chunk_pages() const { return pages_of(config.chunk_tokens, config.block_tokens); }

  /// The first page that a query at `pos` reads. Runs keep everything: nobody else could use their beginnings.
  [[nodiscard]] std::uint32_t first_page(std::uint32_t group, std::uint32_t pos) const {
    const std::uint32_t window = is_paged() ? config.groups[group].window_tokens : 0;
    return window == 0 || pos < window ? 0 : (pos + 1 - window) / config.block_tokens;
  }
  [[nodiscard]] std::span<const TokenId> page_tokens(const SeqTokens& t, std::uint32_t page) const {
    return t.ids.subspan(std::size_t{page} * config.block_tokens, config.block_tokens);
  }
  [[nodiscard]] BlockId cached(std::uint32_t group, const SeqTokens& t, std::uint32_t page) const {
    return device.pool.find({group}, t.chain[page], page_tokens(t, page));
  }

  /// Every call that takes blocks asks here first.
  [[nodiscard]] bool refuses() { return refuse_after > 0 && --refuse_after == 0; }

  void replace(std::uint32_t seat, std::uint32_t group, std::uint32_t page, BlockId block);
  void release(Books& books, SeqId seq);
  void undo_to(std::size_t height);

  // kv_runs.cc
  [[nodiscard]] bool grow_run(SeqId seq, std::uint32_t want);

 private:
  [[nodiscard]] bool extend_or_move(std::uint32_t seat, std::uint32_t pages);
};

}  // namespace octavo
