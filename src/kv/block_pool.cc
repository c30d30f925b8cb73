#include "kv/block_pool.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace octavo {

BlockPool::BlockPool(Space space, std::uint32_t num_blocks, std::uint32_t block_tokens, bool named, Journal& journal,
                     EventLog& events)
    : space_(space),
      journal_(journal),
      events_(events),
      sentinel_(num_blocks),
      block_tokens_(block_tokens),
      nodes_(std::size_t{num_blocks} + 1),
      names_(named ? num_blocks : 0),
      tokens_(named ? std::size_t{num_blocks} * block_tokens : 0),
      index_(named ? num_blocks : 0) {
  OCTAVO_CHECK(num_blocks >= 2, "a pool has a null block and at least one to hand out");
  nodes_[sentinel_].prev = nodes_[sentinel_].next = sentinel_;
  for (std::uint32_t b = 1; b < sentinel_; ++b) link_after(b, nodes_[sentinel_].prev);
  lost_names_.reserve(names_.size());  // the most that one plan can take
  lost_tokens_.reserve(tokens_.size());
}

void BlockPool::unlink(std::uint32_t block) {
  const Node& n = nodes_[block];
  note(Undo::Kind::kUnlink, block, n.prev, n.next);
  nodes_[n.prev].next = n.next, nodes_[n.next].prev = n.prev;
  --free_, cached_ -= n.named;
}

void BlockPool::link_after(std::uint32_t block, std::uint32_t at) {
  Node& n = nodes_[block];
  n.prev = at, n.next = nodes_[at].next;
  nodes_[n.next].prev = block, nodes_[at].next = block;
  ++free_, cached_ += n.named;
  note(Undo::Kind::kLink, block);
}

void BlockPool::set_owners(std::uint32_t block, std::uint32_t owners) {
  note(Undo::Kind::kRefs, block, nodes_[block].owners);
  put_owners(block, owners);
}

void BlockPool::put_owners(std::uint32_t block, std::uint32_t owners) {
  const auto surplus = [](std::uint32_t n) { return n - std::min(n, 1U); };
  surplus_ += surplus(owners);
  surplus_ -= surplus(nodes_[block].owners);
  nodes_[block].owners = owners;
}

BlockId BlockPool::allocate() {
  OCTAVO_CHECK(free_ > 0, "allocation was asked for within what is free");
  const BlockId block{nodes_[sentinel_].next};
  allocate(block);
  return block;
}

void BlockPool::allocate(BlockId block) {
  OCTAVO_CHECK(owners(block) == 0, "what is allocated was free");
  if (is_named(block)) unpublish(block), ++evictions_;
  pin(block);
}

bool BlockPool::is_free_run(std::uint32_t first, std::uint32_t count) const {
  if (first + count > sentinel_) return false;
  return std::all_of(nodes_.begin() + first, nodes_.begin() + first + count,
                     [](const Node& n) { return n.owners == 0; });
}

BlockId BlockPool::find_run(std::uint32_t count) const {
  std::uint32_t length = 0;
  for (std::uint32_t b = 1; b < sentinel_; ++b) {
    length = nodes_[b].owners == 0 ? length + 1 : 0;
    if (length == count) return {b + 1 - count};
  }
  return kNullBlock;
}

std::uint32_t BlockPool::num_free_in_runs_of(std::uint32_t count) const {
  std::uint32_t usable = 0, length = 0;
  for (std::uint32_t b = 1; b <= sentinel_; ++b) {
    const bool is_free = b < sentinel_ && nodes_[b].owners == 0;
    if (!is_free) usable += length / count * count;
    length = is_free ? length + 1 : 0;
  }
  return usable;
}

void BlockPool::pin(BlockId block) {
  if (owners(block) == 0) unlink(block.value);
  set_owners(block.value, owners(block) + 1);
}

void BlockPool::drop(BlockId block) {
  OCTAVO_CHECK(owners(block) > 0, "only an owned block is dropped");
  set_owners(block.value, owners(block) - 1);
  if (owners(block) > 0) return;
  const bool reuse_first = !names_.empty() && !is_named(block);
  link_after(block.value, reuse_first ? sentinel_ : nodes_[sentinel_].prev);
}

std::uint64_t BlockPool::key(const Name& name) {
  std::uint64_t head = 0;
  std::memcpy(&head, name.hash.data(), sizeof head);
  return head + name.group.value;
}

BlockId BlockPool::find(GroupId group, const BlockHash& hash, std::span<const TokenId> tokens) const {
  const std::uint32_t block = index_.find(key({group, hash}), [&](std::uint32_t b) {
    return names_[b].group == group && names_[b].hash == hash && std::ranges::equal(tokens_of(b), tokens);
  });
  return block == HashChains::kNone ? kNullBlock : BlockId{block};
}

void BlockPool::set_name(std::uint32_t block) {
  nodes_[block].named = true, cached_ += nodes_[block].owners == 0;
  index_.insert(key(names_[block]), block);
}

void BlockPool::clear_name(std::uint32_t block) {
  nodes_[block].named = false, cached_ -= nodes_[block].owners == 0;
  index_.erase(key(names_[block]), block);
}

void BlockPool::publish(BlockId block, GroupId group, const BlockHash& hash, std::span<const TokenId> tokens) {
  OCTAVO_CHECK(owners(block) > 0 && !is_named(block), "a block is named once, by its owner");
  names_[block.value] = {group, hash};
  std::ranges::copy(tokens, tokens_of(block.value).begin());
  set_name(block.value);
  note(Undo::Kind::kPublish, block.value);
}

void BlockPool::unpublish(BlockId block) {
  if (journal_.is_open()) {
    const auto tokens = tokens_of(block.value);
    lost_names_.push_back(names_[block.value]);
    lost_tokens_.insert(lost_tokens_.end(), tokens.begin(), tokens.end());
  }
  events_.removed(names_[block.value].group, names_[block.value].hash);
  clear_name(block.value);
  note(Undo::Kind::kForget, block.value);
}

void BlockPool::forget_all_names() {
  for (std::uint32_t b = 1; b < sentinel_; ++b) {
    if (nodes_[b].named) clear_name(b);
  }
  events_.cleared();
}

std::vector<BlockId> BlockPool::free_list() const {
  std::vector<BlockId> out;
  for (std::uint32_t b = nodes_[sentinel_].next; b != sentinel_; b = nodes_[b].next) out.push_back({b});
  return out;
}

void BlockPool::undo(const Undo& u) {
  Node& n = nodes_[u.at];
  switch (u.kind) {
    case Undo::Kind::kUnlink:
      n.prev = u.a, n.next = u.b;
      nodes_[n.prev].next = u.at, nodes_[n.next].prev = u.at;
      ++free_, cached_ += n.named;
      break;
    case Undo::Kind::kLink:
      nodes_[n.prev].next = n.next, nodes_[n.next].prev = n.prev;
      --free_, cached_ -= n.named;
      break;
    case Undo::Kind::kRefs: put_owners(u.at, u.a); break;
    case Undo::Kind::kForget:
      names_[u.at] = lost_names_.back(), lost_names_.pop_back();
      std::copy(lost_tokens_.end() - block_tokens_, lost_tokens_.end(), tokens_of(u.at).begin());
      lost_tokens_.resize(lost_tokens_.size() - block_tokens_);
      set_name(u.at), --evictions_;
      break;
    case Undo::Kind::kPublish: clear_name(u.at); break;
    default: OCTAVO_CHECK(false, "an entry of the pool");
  }
}

void BlockPool::mix_state(std::uint64_t& hash) const {
  const auto mix = [&](std::uint64_t v) { hash = (hash ^ v) * 0x100000001B3U, hash ^= hash >> 29; };
  mix(free_), mix(cached_), mix(evictions_);
  for (BlockId b : free_list()) mix(b.value);
  for (std::uint32_t b = 1; b < sentinel_; ++b) {
    mix(nodes_[b].owners);
    if (!nodes_[b].named) continue;
    mix(key(names_[b]));
    for (TokenId t : tokens_of(b)) mix(static_cast<std::uint64_t>(t.value));
  }
}

}  // namespace octavo
