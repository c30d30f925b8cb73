// Block tables by sequence: a seat per sequence that holds blocks of one space, one table per group in it.
//
// All tables of a seat have the same number of pages. Pages before `first_page` have fallen behind the group's window:
// the null block stands in their place. Every change is noted in the journal. Seats keep their memory.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "kv/hash_chains.h"
#include "kv/journal.h"

namespace octavo {

struct BlockTable {
  std::uint32_t first_page = 0;
  std::vector<BlockId> blocks;  // [pages]
};

struct Seat {
  SeqId seq;
  bool taken = false;
  std::uint32_t tokens = 0;        // computed when the plans so far are done: the next position to be written
  std::uint32_t zeroed = 0;        // pages that are no longer fresh
  std::uint32_t published = 0;     // full pages that have been offered to the prefix index
  std::vector<BlockTable> tables;  // [groups]

  [[nodiscard]] std::uint32_t num_pages() const { return static_cast<std::uint32_t>(tables[0].blocks.size()); }
  [[nodiscard]] std::uint32_t num_blocks() const {
    std::uint32_t n = 0;
    for (const BlockTable& t : tables) n += num_pages() - t.first_page;
    return n;
  }
};

class SeatTable {
 public:
  static constexpr std::uint32_t kNone = HashChains::kNone;

  SeatTable(Space space, std::uint32_t num_seats, std::uint32_t num_groups, std::uint32_t max_pages, Journal& journal);

  [[nodiscard]] std::uint32_t find(SeqId seq) const;
  [[nodiscard]] bool full() const { return free_.empty(); }
  [[nodiscard]] const Seat& operator[](std::uint32_t seat) const { return seats_[seat]; }
  [[nodiscard]] const std::vector<Seat>& all() const { return seats_; }

  std::uint32_t find_or_take(SeqId seq);
  /// The seat is empty. With an open plan it stays until commit: the plan may be taken back.
  void leave(std::uint32_t seat);
  void committed();

  void push(std::uint32_t seat, std::uint32_t group, BlockId block);
  BlockId pop(std::uint32_t seat, std::uint32_t group);
  void replace(std::uint32_t seat, std::uint32_t group, std::uint32_t page, BlockId block);
  void set_first_page(std::uint32_t seat, std::uint32_t group, std::uint32_t page);
  void set_settled(std::uint32_t seat, std::uint32_t zeroed, std::uint32_t published, std::uint32_t tokens);
  /// The block of the first live page, which is no longer one. Never with an open plan.
  BlockId drop_first_page(std::uint32_t seat, std::uint32_t group);

  void undo(const Undo& undo);

 private:
  void take(std::uint32_t seat, SeqId seq);
  void give_up(std::uint32_t seat);
  void note(Undo::Kind kind, std::uint32_t seat, std::uint32_t a = 0, std::uint32_t b = 0, std::uint32_t c = 0) {
    journal_.note({kind, space_, seat, a, b, c});
  }

  Space space_;
  Journal& journal_;
  std::vector<Seat> seats_;
  std::vector<std::uint32_t> free_, leaving_;
  HashChains index_;
};

}  // namespace octavo
