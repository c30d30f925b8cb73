#include "kv/kv_manager.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/kv_state.h"
#include "kv/layout.h"

namespace octavo {

/// `block` stands for another one from here on. Its content follows when the row is settled, and until the plan commits
/// nobody gets the old block.
void KvManager::State::replace(std::uint32_t seat, std::uint32_t group, std::uint32_t page, BlockId block) {
  const BlockId old = device.seats[seat].tables[group].blocks[page];
  device.seats.replace(seat, group, page, block);
  device.held.push_back(old);
  if (page < pages_of(device.seats[seat].tokens, config.block_tokens)) pending.push_back({seat, {old, block}});
}

/// Tail first, so that heads of prompts are evicted last.
void KvManager::State::release(Books& books, SeqId seq) {
  const std::uint32_t seat = books.seats.find(seq);
  if (seat == SeatTable::kNone) return;
  for (std::uint32_t g = 0; g < num_groups; ++g) {
    while (!books.seats[seat].tables[g].blocks.empty()) {
      const BlockId block = books.seats.pop(seat, g);
      if (block != kNullBlock) books.pool.drop(block);
    }
    books.seats.set_first_page(seat, g, 0);
  }
  books.seats.set_settled(seat, 0, 0, 0);
  books.seats.leave(seat);
}

void KvManager::State::undo_to(std::size_t height) {
  while (journal.height() > height) {
    const Undo u = journal.pop();
    Books& books = u.space == Space::kDevice ? device : *host;
    switch (u.kind) {
      case Undo::Kind::kUnlink:
      case Undo::Kind::kLink:
      case Undo::Kind::kRefs:
      case Undo::Kind::kForget:
      case Undo::Kind::kPublish: books.pool.undo(u); break;
      case Undo::Kind::kHit: hit_tokens -= u.at; break;
      default: books.seats.undo(u);
    }
  }
}

std::uint64_t KvManager::bytes(const KvConfig& config) {
  const auto books = [&](std::uint64_t blocks, bool named) {
    return blocks * (BlockPool::bytes_per_block(config.block_tokens, named) + sizeof(BlockId));
  };
  return books(config.num_blocks, config.prefix_caching) + books(config.host_blocks, false);
}

KvManager::KvManager(const KvConfig& config) {
  OCTAVO_CHECK(!config.groups.empty(), "a model has at least one group");
  OCTAVO_CHECK(config.block_tokens > 0 && config.max_seqs > 0, "blocks and seats are not empty");
  OCTAVO_CHECK(config.memory == KvMemory::kPaged || !config.prefix_caching, "only pages are shared");
  OCTAVO_CHECK(config.memory != KvMemory::kDynamic || config.chunk_tokens > 0, "a run grows by something");
  state_ = std::make_unique<State>(config);
}
KvManager::~KvManager() = default;

void KvManager::begin(BlockOps& ops) {
  OCTAVO_CHECK(!open(), "one plan is open at a time");
  state_->ops = &ops;
  state_->journal.open();
  state_->bottom = mark();
}

bool KvManager::open() const { return state_->ops != nullptr; }

KvMark KvManager::mark() const {
  const State& s = *state_;
  return {s.journal.height(),  s.pending.size(),    s.device.held.size(), s.host ? s.host->held.size() : 0,
          s.events.mark(),     s.ops->saves.size(), s.ops->copies.size(), s.ops->zeros.size(),
          s.ops->loads.size(), s.moved_runs};
}

void KvManager::rewind(const KvMark& mark) {
  State& s = *state_;
  s.undo_to(mark.journal);
  s.pending.resize(mark.pending);
  s.device.held.resize(mark.held);
  if (s.host) s.host->held.resize(mark.host_held);
  s.events.rewind(mark.events);
  s.ops->saves.resize(mark.saves), s.ops->copies.resize(mark.copies);
  s.ops->zeros.resize(mark.zeros), s.ops->loads.resize(mark.loads);
  s.moved_runs = mark.moved_runs;
}

void KvManager::commit() {
  State& s = *state_;
  OCTAVO_CHECK(open(), "an open plan is committed");
  s.copies += s.ops->copies.size();
  s.journal.close();
  s.ops = nullptr;
  s.device.pool.committed();
  s.pending.clear();
  for (State::Books* books : {&s.device, s.host ? &*s.host : nullptr}) {
    if (books == nullptr) continue;
    for (const BlockId block : books->held) books->pool.drop(block);
    books->held.clear();
    books->seats.committed();
  }
}

void KvManager::abandon() {
  OCTAVO_CHECK(open(), "an open plan is abandoned");
  rewind(state_->bottom);
  state_->journal.close();
  state_->ops = nullptr;
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
      hit.blocks_in_use += s.device.pool.owners(s.cached(g, t, page)) > 0;
    }
  }
  return hit;
}

std::uint32_t KvManager::blocks_for(std::uint32_t tokens) const {
  const State& s = *state_;
  const KvConfig& c = s.config;
  if (c.memory == KvMemory::kStatic) return s.num_groups * s.max_pages();
  std::uint64_t blocks = 0;
  for (const GroupSpec& g : c.groups) {
    blocks += pages_held(s.is_paged() ? g.window_tokens : 0, tokens, c.block_tokens, c.max_step_tokens);
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, ~0U));
}

bool KvManager::can_ever_hold(std::uint32_t tokens) const { return blocks_for(tokens) <= state_->device.pool.total(); }

std::uint32_t KvManager::longest() const {
  std::uint32_t fits = 0, beyond = state_->config.max_model_len + 1;
  while (fits + 1 < beyond) {
    const std::uint32_t middle = fits + (beyond - fits) / 2;
    (can_ever_hold(middle) ? fits : beyond) = middle;
  }
  return fits;
}

std::uint32_t KvManager::missing(SeqId seq, std::uint32_t tokens) const {
  const std::uint32_t seat = state_->device.seats.find(seq);
  const std::uint32_t have = seat == SeatTable::kNone ? 0 : state_->device.seats[seat].num_blocks();
  return blocks_for(tokens) - std::min(blocks_for(tokens), have);
}

Pos KvManager::reach(SeqId seq, Pos wanted) const {
  const State& s = *state_;
  const std::uint32_t seat = s.device.seats.find(seq);
  const std::uint64_t have = seat == SeatTable::kNone ? 0 : s.device.seats[seat].num_pages();
  const std::uint64_t pages = have + (s.is_paged() ? s.device.pool.num_free() / s.num_groups : 0);
  return {static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted.value, pages * s.config.block_tokens))};
}

Pos KvManager::owned(SeqId seq, Pos wanted) const {
  const std::uint32_t seat = state_->device.seats.find(seq);
  const std::uint64_t have = seat == SeatTable::kNone ? 0 : state_->device.seats[seat].num_pages();
  return {static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted.value, have * state_->config.block_tokens))};
}

bool KvManager::holds(SeqId seq) const {
  const std::uint32_t seat = state_->device.seats.find(seq);
  return seat != SeatTable::kNone && state_->device.seats[seat].num_pages() > 0;
}

TableView KvManager::table(SeqId seq, GroupId group) const {
  const std::uint32_t seat = state_->device.seats.find(seq);
  if (seat == SeatTable::kNone) return {};
  const BlockTable& t = state_->device.seats[seat].tables[group.value];
  return {t.first_page, std::span(t.blocks).subspan(t.first_page)};
}

std::uint32_t KvManager::owners(BlockId block) const { return state_->device.pool.owners(block); }

std::vector<BlockId> KvManager::free_list() const { return state_->device.pool.free_list(); }

std::vector<BlockId> KvManager::nobodys() const {
  std::vector<BlockId> out = state_->device.pool.free_list();
  std::erase_if(out, [this](BlockId block) { return state_->device.pool.is_named(block); });
  return out;
}

KvCounters KvManager::counters() const {
  const State& s = *state_;
  const BlockPool& pool = s.device.pool;
  KvCounters c;
  c.blocks_total = pool.total(), c.blocks_free = pool.num_free(), c.blocks_cached = pool.num_cached();
  if (s.host) c.host_total = s.host->pool.total(), c.host_free = s.host->pool.num_free();
  c.hit_tokens = s.hit_tokens, c.evictions = pool.evictions(), c.copies = s.copies, c.moved_runs = s.moved_runs;
  return c;
}

KvUsage KvManager::usage() const {
  const State& s = *state_;
  const BlockPool& pool = s.device.pool;
  KvUsage u;
  u.reserved = std::uint64_t{pool.total() - pool.num_free()} * s.config.block_tokens;
  for (const Seat& seat : s.device.seats.all()) {
    for (const BlockTable& t : seat.tables) u.used += seat.tokens - std::uint64_t{t.first_page} * s.config.block_tokens;
  }
  u.used -= pool.surplus_owners() * s.config.block_tokens;  // shared blocks are full ones, once who writes has copied
  if (!s.is_paged()) {
    const std::uint32_t at_once = s.config.memory == KvMemory::kStatic ? s.max_pages() : s.chunk_pages();
    u.external = std::uint64_t{pool.num_free() - pool.num_free_in_runs_of(at_once)} * s.config.block_tokens;
  }
  return u;
}

std::uint64_t KvManager::state_hash() const {
  const State& s = *state_;
  std::uint64_t hash = s.hit_tokens + 31 * s.moved_runs;
  for (const State::Books* books : {&s.device, s.host ? &*s.host : nullptr}) {
    if (books == nullptr) continue;
    std::uint64_t seats = 0;  // summed: which seat a sequence has decides nothing
    for (const Seat& seat : books->seats.all()) {
      if (!seat.taken) continue;
      std::uint64_t h = 0xCBF29CE484222325U;
      const auto mix = [&](std::uint64_t v) { h = (h ^ v) * 0x100000001B3U, h ^= h >> 29; };
      mix(seat.seq.value), mix(seat.tokens), mix(seat.zeroed), mix(seat.published);
      for (const BlockTable& t : seat.tables) {
        mix(t.first_page), mix(t.blocks.size());
        for (const BlockId b : t.blocks) mix(b.value);
      }
      seats += h;
    }
    hash = (hash ^ seats) * 0x100000001B3U;
    books->pool.mix_state(hash);
  }
  return hash;
}

bool KvManager::admit(SeqId seq, const SeqTokens& t, const PrefixHit& hit, std::uint32_t spare) {
  State& s = *state_;
  OCTAVO_CHECK(open() && !holds(seq), "a newcomer is admitted into an open plan");
  const auto length = static_cast<std::uint32_t>(t.ids.size());
  const std::uint32_t needs = blocks_for(length);
  const std::uint64_t takes = needs - std::min(needs, hit.blocks_in_use);
  if (takes + spare > s.device.pool.num_free() || s.refuses()) return false;
  if (!s.is_paged()) return s.grow_run(seq, pages_of(length, s.config.block_tokens));
  const std::uint32_t seat = s.device.seats.find_or_take(seq);
  const std::uint32_t pages = hit.num_tokens / s.config.block_tokens;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const std::uint32_t first = s.first_page(g, hit.num_tokens);
    for (std::uint32_t page = 0; page < pages; ++page) {
      const BlockId block = page < first ? kNullBlock : s.cached(g, t, page);
      OCTAVO_CHECK(page < first || block != kNullBlock, "a hit is admitted in the state that gave it");
      if (block != kNullBlock) s.device.pool.pin(block);
      s.device.seats.push(seat, g, block);
    }
    if (pages > 0) s.device.seats.set_first_page(seat, g, first);
  }
  s.device.seats.set_settled(seat, pages, pages, hit.num_tokens);
  s.hit_tokens += hit.num_tokens;
  s.journal.note({Undo::Kind::kHit, Space::kDevice, hit.num_tokens});
  return true;
}

bool KvManager::grow(SeqId seq, Pos end) {
  State& s = *state_;
  OCTAVO_CHECK(open(), "planning calls need an open plan");
  const std::uint32_t size = s.config.block_tokens, held_by = s.device.seats.find(seq);
  const Seat* held = held_by == SeatTable::kNone ? nullptr : &s.device.seats[held_by];
  const std::uint32_t have = held == nullptr ? 0 : held->num_pages();
  const std::uint32_t want = std::max(pages_of(end.value, size), have);
  // The next position to be written may lie in a block that others read: then it goes to a copy.
  const std::uint32_t tail = held != nullptr && held->tokens % size != 0 ? held->tokens / size : have;
  const auto is_shared = [&](std::uint32_t g) {
    return tail < have && s.device.pool.owners(held->tables[g].blocks[tail]) > 1;
  };
  std::uint64_t takes = std::uint64_t{want - have} * s.num_groups;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) takes += is_shared(g);
  if (takes == 0) return true;
  if (takes > s.device.pool.num_free() || s.refuses()) return false;
  if (!s.is_paged()) return s.grow_run(seq, want);
  const std::uint32_t seat = s.device.seats.find_or_take(seq);
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    if (is_shared(g)) s.replace(seat, g, tail, s.device.pool.allocate());
    for (std::uint32_t page = have; page < want; ++page) s.device.seats.push(seat, g, s.device.pool.allocate());
  }
  return true;
}

void KvManager::settle(SeqId seq, const SeqTokens& t, Pos end) {
  State& s = *state_;
  const std::uint32_t seat = s.device.seats.find(seq), size = s.config.block_tokens;
  OCTAVO_CHECK(open() && seat != SeatTable::kNone, "what a sequence holds is settled in an open plan");
  const Seat& held = s.device.seats[seat];
  const std::uint32_t zeroed = std::max(pages_of(end.value, size), held.zeroed);
  const std::uint32_t published = s.config.prefix_caching ? end.value / size : 0;
  OCTAVO_CHECK(zeroed <= held.num_pages() && (published == 0 || published <= t.chain.size()),
               "full blocks, known tokens");
  for (const State::PendingCopy& p : s.pending) {
    if (p.seat == seat) s.ops->copies.push_back(p.copy);
  }
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const BlockTable& table = held.tables[g];
    for (std::uint32_t page = held.zeroed; page < zeroed; ++page) s.ops->zeros.push_back(table.blocks[page]);
    bool continues = false;
    for (std::uint32_t page = std::max(held.published, table.first_page); page < published; ++page) {
      const BlockId block = table.blocks[page];
      const bool is_new = !s.device.pool.is_named(block) && s.cached(g, t, page) == kNullBlock;
      if (is_new) {  // else this block or another bears the name
        s.device.pool.publish(block, {g}, t.chain[page], s.page_tokens(t, page));
        s.events.stored(continues, {g}, page == 0 ? t.root : t.chain[page - 1], t.chain[page], s.page_tokens(t, page));
      }
      continues = is_new;
    }
  }
  s.device.seats.set_settled(seat, zeroed, published, end.value);
}

void KvManager::release(SeqId seq) {
  state_->release(state_->device, seq);
  if (state_->host) state_->release(*state_->host, seq);
}

void KvManager::processed(SeqId seq, Pos end) {
  State& s = *state_;
  OCTAVO_CHECK(!open(), "results are applied between plans");
  const std::uint32_t seat = s.device.seats.find(seq);
  if (seat == SeatTable::kNone || !s.is_paged()) return;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const std::uint32_t live = std::min(s.first_page(g, end.value), s.device.seats[seat].num_pages());
    while (s.device.seats[seat].tables[g].first_page < live)
      s.device.pool.drop(s.device.seats.drop_first_page(seat, g));
  }
}

void KvManager::unpublish(SeqId seq, Pos processed) {
  State& s = *state_;
  OCTAVO_CHECK(!open(), "results are applied between plans");
  const std::uint32_t seat = s.device.seats.find(seq);
  const std::uint32_t filled = processed.value / s.config.block_tokens;
  if (seat == SeatTable::kNone || s.device.seats[seat].published <= filled) return;
  for (std::uint32_t g = 0; g < s.num_groups; ++g) {
    const BlockTable& table = s.device.seats[seat].tables[g];
    for (std::uint32_t page = std::max(filled, table.first_page); page < s.device.seats[seat].published; ++page) {
      if (s.device.pool.is_named(table.blocks[page])) s.device.pool.unpublish(table.blocks[page]);
    }
  }
  s.device.seats.set_settled(seat, s.device.seats[seat].zeroed, filled, processed.value);
}

bool KvManager::reset_prefix_cache() {
  State& s = *state_;
  OCTAVO_CHECK(!open(), "the cache is cleared between plans");
  if (s.device.pool.num_free() < s.device.pool.total()) return false;
  s.device.pool.forget_all_names();
  return true;
}

void KvManager::take_events(KvEvents& out) {
  OCTAVO_CHECK(!open(), "events of an open plan may be taken back");
  state_->events.take(out);
}

std::uint64_t KvManager::refuse_after(std::uint64_t calls) { return std::exchange(state_->refuse_after, calls); }

}  // namespace octavo
