#include "kv/kv_manager.h"

#include <algorithm>

#include "base/check.h"
#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "kv/journal.h"
#include "kv/layout.h"

namespace octavo {
namespace {

std::uint32_t pages_of(std::uint32_t tokens, std::uint32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

/// The first page that a query at `pos` reads.
std::uint32_t first_live_page(std::uint32_t pos, std::uint32_t window, std::uint32_t block_tokens) {
  return window == 0 || pos < window ? 0 : (pos + 1 - window) / block_tokens;
}

}  // namespace

struct KvManager::State {
  explicit State(const KvConfig& c)
      : config(c),
        num_groups(static_cast<std::uint32_t>(c.groups.size())),
        pool(c.num_blocks, c.block_tokens, c.prefix_caching, journal),
        seats(2 * c.max_seqs, num_groups, pages_of(c.max_model_len, c.block_tokens), journal) {}

  KvConfig config;
  std::uint32_t num_groups;
  Journal journal;
  BlockPool pool;
  SeatTable seats;
  BlockOps* ops = nullptr;  // of the open plan
  std::uint64_t hit_tokens = 0;

  [[nodiscard]] std::span<const TokenId> page_tokens(const SeqTokens& t, std::uint32_t page) const {
    return t.ids.subspan(std::size_t{page} * config.block_tokens, config.block_tokens);
  }
  [[nodiscard]] BlockId cached(std::uint32_t group, const SeqTokens& t, std::uint32_t page) const {
    return pool.find({group}, t.chain[page], page_tokens(t, page));
  }
  [[nodiscard]] std::uint32_t first_page(std::uint32_t group, std::uint32_t pos) const {
    return first_live_page(pos, config.groups[group].window_tokens, config.block_tokens);
  }
  void undo_last() {
    const Undo u = journal.pop();
    switch (u.kind) {
      case Undo::Kind::kUnlink:
      case Undo::Kind::kLink:
      case Undo::Kind::kRefs:
      case Undo::Kind::kForget:
      case Undo::Kind::kPublish: return pool.undo(u);
      case Undo::Kind::kHit: hit_tokens -= u.at; return;
      default: return seats.undo(u);
    }
  }
};

KvManager::KvManager(const KvConfig& config) {
  OCTAVO_CHECK(!config.groups.empty(), "a model has at least one group");
  OCTAVO_CHECK(config.block_tokens > 0 && config.max_seqs > 0, "blocks and seats are not empty");
  state_ = std::make_unique<State>(config);
}
KvManager::~KvManager() = default;

void KvManager::begin(BlockOps& ops) {
  OCTAVO_CHECK(!open(), "one plan is open at a time");
  state_->ops = &ops;
  state_->journal.open();
}

bool KvManager::open() const { return state_->ops != nullptr; }

KvMark KvManager::mark() const {
  return {state_->journal.height(), state_->ops->copies.size(), state_->ops->zeros.size()};
}

void KvManager::rewind(const KvMark& mark) {
  State& s = *state_;
  while (s.journal.height() > mark.journal) s.undo_last();
  s.ops->copies.resize(mark.copies), s.ops->zeros.resize(mark.zeros);
}

void KvManager::commit() {
  State& s = *state_;
  OCTAVO_CHECK(open(), "an open plan is committed");
  s.journal.close();
  s.pool.committed(), s.seats.committed();
  s.ops = nullptr;
}

void KvManager::abandon() {
  State& s = *state_;
  OCTAVO_CHECK(open(), "an open plan is abandoned");
  while (s.journal.height() > 0) s.undo_last();
  s.journal.close();
  s.ops = nullptr;
}

const KvConfig& KvManager::config() const { return state_->config; }

PrefixHit KvManager::lookup(const SeqTokens& t) const {
  const State& s = *state_;
  const std::uint32_t size = s.config.block_tokens;
  if (!s.config.prefix_caching || t.ids.empty()) return {};
  auto pages = static_cast<std::uint32_t>(std::min((t.ids.size() - 1) / size, t.chain.size()));
  const auto miss_in = [&](std::uint32_t group) {  // lowers `pages` until the group has all that it needs for them
    const std::uint32_t before = pages;
    if (s.config.groups[group].window_tokens == 0) {
      std::uint32_t found = 0;
      while (found < pages && s.cached(group, t, found) != kNullBlock) ++found;
      pages = found;
    } else {
      for (std::uint32_t page = pages; page > s.first_page(group, pages * size); --page) {
        if (s.cached(group, t, page - 1) == kNullBlock) pages = page - 1;
      }
    }
    return pages < before;
  };
  bool again = true;
  while (again) {
    again = false;
    for (std::uint32_t g = 0; g < s.num_groups; ++g) again |= miss_in(g);
  }
  PrefixHit hit;
  hit.num_tokens = pages * size;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    for (std::uint32_t page = s.first_page(g, hit.num_tokens); page < pages; ++page) {
      hit.blocks_in_use += s.pool.owners(s.cached(g, t, page)) > 0;
    }
  }
  return hit;
}

std::uint32_t KvManager::blocks_for(std::uint32_t tokens) const {
  const KvConfig& c = state_->config;
  std::uint64_t blocks = 0;
  for (const GroupSpec& g : c.groups) {
    blocks += pages_held(g.window_tokens, tokens, c.block_tokens, c.max_step_tokens);
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, ~0U));
}

bool KvManager::can_ever_hold(std::uint32_t tokens) const { return blocks_for(tokens) <= state_->pool.total(); }

std::uint32_t KvManager::longest() const {
  std::uint32_t fits = 0, beyond = state_->config.max_model_len + 1;
  while (fits + 1 < beyond) {
    const std::uint32_t middle = fits + (beyond - fits) / 2;
    (can_ever_hold(middle) ? fits : beyond) = middle;
  }
  return fits;
}

bool KvManager::can_hold_now(std::uint32_t tokens, const PrefixHit& hit, std::uint32_t spare) const {
  const std::uint64_t takes = blocks_for(tokens) - std::min(blocks_for(tokens), hit.blocks_in_use);
  return takes + spare <= state_->pool.num_free();
}

std::uint32_t KvManager::missing(SeqId seq, std::uint32_t tokens) const {
  const std::uint32_t seat = state_->seats.find(seq);
  const std::uint32_t have = seat == SeatTable::kNone ? 0 : state_->seats[seat].num_blocks();
  return blocks_for(tokens) - std::min(blocks_for(tokens), have);
}

Pos KvManager::reach(SeqId seq, Pos wanted) const {
  const State& s = *state_;
  const std::uint32_t seat = s.seats.find(seq);
  const std::uint64_t have = seat == SeatTable::kNone ? 0 : s.seats[seat].num_pages();
  const std::uint64_t pages = have + s.pool.num_free() / s.num_groups;
  return {static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted.value, pages * s.config.block_tokens))};
}

bool KvManager::holds(SeqId seq) const {
  const std::uint32_t seat = state_->seats.find(seq);
  return seat != SeatTable::kNone && state_->seats[seat].num_pages() > 0;
}

TableView KvManager::table(SeqId seq, GroupId group) const {
  const std::uint32_t seat = state_->seats.find(seq);
  if (seat == SeatTable::kNone) return {};
  const BlockTable& t = state_->seats[seat].tables[group.value];
  return {t.first_page, std::span(t.blocks).subspan(t.first_page)};
}

std::uint32_t KvManager::owners(BlockId block) const { return state_->pool.owners(block); }

std::vector<BlockId> KvManager::free_list() const { return state_->pool.free_list(); }

KvCounters KvManager::counters() const {
  const BlockPool& pool = state_->pool;
  KvCounters c;
  c.blocks_total = pool.total(), c.blocks_free = pool.num_free(), c.blocks_cached = pool.num_cached();
  c.hit_tokens = state_->hit_tokens, c.evictions = pool.evictions();
  return c;
}

std::uint64_t KvManager::state_hash() const {
  std::uint64_t seats = 0;  // summed: which seat a sequence has decides nothing
  for (const Seat& seat : state_->seats.all()) {
    if (!seat.taken) continue;
    std::uint64_t hash = 0xCBF29CE484222325U;
    const auto mix = [&](std::uint64_t v) { hash = (hash ^ v) * 0x100000001B3U, hash ^= hash >> 29; };
    mix(seat.seq.value), mix(seat.zeroed), mix(seat.published);
    for (const BlockTable& t : seat.tables) {
      mix(t.first_page), mix(t.blocks.size());
      for (BlockId b : t.blocks) mix(b.value);
    }
    seats += hash;
  }
  std::uint64_t hash = seats ^ state_->hit_tokens;
  state_->pool.mix_state(hash);
  return hash;
}

void KvManager::admit(SeqId seq, const SeqTokens& t, const PrefixHit& hit) {
  State& s = *state_;
  OCTAVO_CHECK(open() && !holds(seq), "a newcomer is admitted into an open plan");
  const std::uint32_t seat = s.seats.find_or_take(seq);
  const std::uint32_t pages = hit.num_tokens / s.config.block_tokens;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const std::uint32_t first = s.first_page(g, hit.num_tokens);
    for (std::uint32_t page = 0; page < pages; ++page) {
      const BlockId block = page < first ? kNullBlock : s.cached(g, t, page);
      OCTAVO_CHECK(page < first || block != kNullBlock, "a hit is admitted in the state that gave it");
      if (block != kNullBlock) s.pool.pin(block);
      s.seats.push(seat, g, block);
    }
    if (pages > 0) s.seats.set_first_page(seat, g, first);
  }
  s.seats.set_settled(seat, pages, pages);
  s.hit_tokens += hit.num_tokens;
  s.journal.note({Undo::Kind::kHit, hit.num_tokens});
}

bool KvManager::grow(SeqId seq, Pos end) {
  State& s = *state_;
  OCTAVO_CHECK(open(), "planning calls need an open plan");
  const std::uint32_t old_seat = s.seats.find(seq);
  const std::uint32_t have = old_seat == SeatTable::kNone ? 0 : s.seats[old_seat].num_pages();
  const std::uint32_t want = pages_of(end.value, s.config.block_tokens);
  if (want <= have) return true;
  if (std::uint64_t{want - have} * s.num_groups > s.pool.num_free()) return false;
  const std::uint32_t seat = s.seats.find_or_take(seq);
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    for (std::uint32_t page = have; page < want; ++page) {
      s.seats.push(seat, g, s.pool.allocate());
    }
  }
  return true;
}

void KvManager::settle(SeqId seq, const SeqTokens& t, Pos end) {
  State& s = *state_;
  const std::uint32_t seat = s.seats.find(seq);
  OCTAVO_CHECK(open() && seat != SeatTable::kNone, "what a sequence holds is settled in an open plan");
  const Seat& held = s.seats[seat];
  const std::uint32_t zeroed = held.num_pages();
  const std::uint32_t published = s.config.prefix_caching ? end.value / s.config.block_tokens : 0;
  if (zeroed == held.zeroed && published == held.published) return;
  OCTAVO_CHECK(published <= zeroed && (published == 0 || published <= t.chain.size()), "full blocks of known tokens");
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const BlockTable& table = held.tables[g];
    for (std::uint32_t page = held.zeroed; page < zeroed; ++page) s.ops->zeros.push_back(table.blocks[page]);
    for (std::uint32_t page = std::max(held.published, table.first_page); page < published; ++page) {
      if (s.cached(g, t, page) != kNullBlock) continue;  // another block bears the name
      s.pool.publish(table.blocks[page], {g}, t.chain[page], s.page_tokens(t, page));
    }
  }
  s.seats.set_settled(seat, zeroed, published);
}

void KvManager::release(SeqId seq) {
  State& s = *state_;
  const std::uint32_t seat = s.seats.find(seq);
  if (seat == SeatTable::kNone) return;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    while (!s.seats[seat].tables[g].blocks.empty()) {
      const BlockId block = s.seats.pop(seat, g);
      if (block != kNullBlock) s.pool.drop(block);
    }
    s.seats.set_first_page(seat, g, 0);
  }
  s.seats.set_settled(seat, 0, 0);
  s.seats.leave(seat);
}

void KvManager::processed(SeqId seq, Pos end) {
  State& s = *state_;
  OCTAVO_CHECK(!open(), "results are applied between plans");
  const std::uint32_t seat = s.seats.find(seq);
  if (seat == SeatTable::kNone) return;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const std::uint32_t live = std::min(s.first_page(g, end.value), s.seats[seat].num_pages());
    while (s.seats[seat].tables[g].first_page < live) s.pool.drop(s.seats.drop_first_page(seat, g));
  }
}

void KvManager::unpublish(SeqId seq, Pos processed) {
  State& s = *state_;
  OCTAVO_CHECK(!open(), "results are applied between plans");
  const std::uint32_t seat = s.seats.find(seq);
  const std::uint32_t filled = processed.value / s.config.block_tokens;
  if (seat == SeatTable::kNone || s.seats[seat].published <= filled) return;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const BlockTable& table = s.seats[seat].tables[g];
    for (std::uint32_t page = std::max(filled, table.first_page); page < s.seats[seat].published; ++page) {
      if (s.pool.is_named(table.blocks[page])) s.pool.unpublish(table.blocks[page]);
    }
  }
  s.seats.set_settled(seat, s.seats[seat].zeroed, filled);
}

bool KvManager::reset_prefix_cache() {
  State& s = *state_;
  OCTAVO_CHECK(!open(), "the cache is cleared between plans");
  if (s.pool.num_free() < s.pool.total()) return false;
  s.pool.forget_all_names();
  return true;
}

}  // namespace octavo
