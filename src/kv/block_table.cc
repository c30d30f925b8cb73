#include "kv/block_table.h"

#include "base/check.h"

namespace octavo {

SeatTable::SeatTable(Space space, std::uint32_t num_seats, std::uint32_t num_groups, std::uint32_t max_pages,
                     Journal& journal)
    : space_(space), journal_(journal), seats_(num_seats), index_(num_seats) {
  for (Seat& seat : seats_) {
    seat.tables.resize(num_groups);
    for (BlockTable& table : seat.tables) table.blocks.reserve(max_pages);
  }
  free_.reserve(num_seats), leaving_.reserve(num_seats);
  for (std::uint32_t s = num_seats; s > 0; --s) free_.push_back(s - 1);
}

std::uint32_t SeatTable::find(SeqId seq) const {
  return index_.find(seq.value, [&](std::uint32_t s) { return seats_[s].seq == seq; });
}

void SeatTable::take(std::uint32_t seat, SeqId seq) {
  seats_[seat].seq = seq, seats_[seat].taken = true;
  index_.insert(seq.value, seat);
}

void SeatTable::give_up(std::uint32_t seat) {
  index_.erase(seats_[seat].seq.value, seat);
  seats_[seat].taken = false;
  free_.push_back(seat);
}

std::uint32_t SeatTable::find_or_take(SeqId seq) {
  if (const std::uint32_t seat = find(seq); seat != kNone) return seat;
  OCTAVO_CHECK(!free_.empty(), "no more sequences hold blocks than max_seqs, and as many leave in one plan");
  const std::uint32_t seat = free_.back();
  free_.pop_back();
  take(seat, seq);
  note(Undo::Kind::kSeat, seat);
  return seat;
}

void SeatTable::leave(std::uint32_t seat) {
  if (!journal_.is_open()) return give_up(seat);
  leaving_.push_back(seat);
  note(Undo::Kind::kLeave, seat);
}

void SeatTable::committed() {
  for (const std::uint32_t seat : leaving_) {
    if (seats_[seat].taken && seats_[seat].num_pages() == 0) give_up(seat);
  }
  leaving_.clear();
}

void SeatTable::push(std::uint32_t seat, std::uint32_t group, BlockId block) {
  seats_[seat].tables[group].blocks.push_back(block);
  note(Undo::Kind::kPush, seat, group);
}

BlockId SeatTable::pop(std::uint32_t seat, std::uint32_t group) {
  std::vector<BlockId>& blocks = seats_[seat].tables[group].blocks;
  const BlockId block = blocks.back();
  blocks.pop_back();
  note(Undo::Kind::kPop, seat, group, block.value);
  return block;
}

void SeatTable::set_first_page(std::uint32_t seat, std::uint32_t group, std::uint32_t page) {
  std::uint32_t& first_page = seats_[seat].tables[group].first_page;
  note(Undo::Kind::kFirstPage, seat, group, first_page);
  first_page = page;
}

void SeatTable::replace(std::uint32_t seat, std::uint32_t group, std::uint32_t page, BlockId block) {
  BlockId& at = seats_[seat].tables[group].blocks[page];
  note(Undo::Kind::kReplace, seat, group, page, at.value);
  at = block;
}

void SeatTable::set_settled(std::uint32_t seat, std::uint32_t zeroed, std::uint32_t published, std::uint32_t tokens) {
  Seat& s = seats_[seat];
  note(Undo::Kind::kSettled, seat, s.zeroed, s.published, s.tokens);
  s.zeroed = zeroed, s.published = published, s.tokens = tokens;
}

BlockId SeatTable::drop_first_page(std::uint32_t seat, std::uint32_t group) {
  OCTAVO_CHECK(!journal_.is_open(), "windows move between plans");
  BlockTable& table = seats_[seat].tables[group];
  const BlockId block = table.blocks[table.first_page];
  table.blocks[table.first_page++] = kNullBlock;
  return block;
}

void SeatTable::undo(const Undo& u) {
  Seat& seat = seats_[u.at];
  switch (u.kind) {
    case Undo::Kind::kSeat: give_up(u.at); break;
    case Undo::Kind::kLeave: leaving_.pop_back(); break;
    case Undo::Kind::kPush: seat.tables[u.a].blocks.pop_back(); break;
    case Undo::Kind::kPop: seat.tables[u.a].blocks.push_back({u.b}); break;
    case Undo::Kind::kReplace: seat.tables[u.a].blocks[u.b] = {u.c}; break;
    case Undo::Kind::kFirstPage: seat.tables[u.a].first_page = u.b; break;
    case Undo::Kind::kSettled: seat.zeroed = u.a, seat.published = u.b, seat.tokens = u.c; break;
    default: OCTAVO_CHECK(false, "an entry of the tables");
  }
}

}  // namespace octavo
