// Blocks of one space: who counts on them, which are free and in which order they are reused, and by which name they
// are found.
//
// The free list is intrusive and doubly linked: taken from the head. With names (prefix caching) a freed block without
// one goes to the head (reused first, LIFO), one with a name to the tail (LRU), where it can still be found and pinned.
// Without names the list is FIFO. Two full blocks of equal tokens may exist; only the first bears the name.
// Every change is noted in the journal. Invariant: a block with owners is in no free list.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/event_log.h"
#include "kv/hash_chains.h"
#include "kv/journal.h"
#include "kv/kv_types.h"

namespace octavo {

class BlockPool {
 public:
  /// `num_blocks` includes block 0, the null block, which is never handed out. Names that are lost are told to
  /// `events`.
  BlockPool(Space space, std::uint32_t num_blocks, std::uint32_t block_tokens, bool named, Journal& journal,
            EventLog& events);

  /// What a block's entries take, whoever has it.
  [[nodiscard]] static constexpr std::uint64_t bytes_per_block(std::uint32_t block_tokens, bool named) {
    constexpr std::uint64_t kIndex =
        2 * sizeof(std::uint32_t) + sizeof(std::uint32_t);  // heads, at most twice, and next
    return sizeof(Node) + (named ? sizeof(Name) + sizeof(TokenId) * block_tokens + kIndex : 0);
  }

  [[nodiscard]] std::uint32_t total() const { return sentinel_ - 1; }
  [[nodiscard]] std::uint32_t num_free() const { return free_; }
  [[nodiscard]] std::uint32_t num_cached() const { return cached_; }
  [[nodiscard]] std::uint64_t evictions() const { return evictions_; }
  [[nodiscard]] std::uint64_t surplus_owners() const { return surplus_; }  // beyond the first, over all blocks
  [[nodiscard]] std::uint32_t owners(BlockId block) const { return nodes_[block.value].owners; }
  [[nodiscard]] std::vector<BlockId> free_list() const;  // next to be allocated first
  [[nodiscard]] bool is_named(BlockId block) const { return nodes_[block.value].named; }

  BlockId allocate();            // from the head, losing its name; some block must be free
  void allocate(BlockId block);  // this one, which is free
  void pin(BlockId block);       // one owner more
  void drop(BlockId block);      // one owner less

  // Runs of consecutive free blocks. Both walk the whole pool: only strategies that need runs pay for them.
  [[nodiscard]] bool is_free_run(std::uint32_t first, std::uint32_t count) const;
  [[nodiscard]] BlockId find_run(std::uint32_t count) const;  // the lowest; the null block if there is none
  [[nodiscard]] std::uint32_t num_free_in_runs_of(std::uint32_t count) const;

  /// The block of that name and these very tokens, or the null block.
  [[nodiscard]] BlockId find(GroupId group, const BlockHash& hash, std::span<const TokenId> tokens) const;
  void publish(BlockId block, GroupId group, const BlockHash& hash, std::span<const TokenId> tokens);
  void unpublish(BlockId block);
  void forget_all_names();

  void undo(const Undo& undo);
  void committed() { lost_names_.clear(), lost_tokens_.clear(); }
  void mix_state(std::uint64_t& hash) const;

 private:
  struct Node {
    std::uint32_t prev = 0, next = 0, owners = 0;
    bool named = false;
  };
  struct Name {
    GroupId group;
    BlockHash hash;
  };

  void unlink(std::uint32_t block);
  void link_after(std::uint32_t block, std::uint32_t at);
  void set_owners(std::uint32_t block, std::uint32_t owners);
  void put_owners(std::uint32_t block, std::uint32_t owners);
  void set_name(std::uint32_t block);
  void clear_name(std::uint32_t block);
  [[nodiscard]] static std::uint64_t key(const Name& name);
  [[nodiscard]] std::span<TokenId> tokens_of(std::uint32_t block) {
    return std::span(tokens_).subspan(std::size_t{block} * block_tokens_, block_tokens_);
  }
  [[nodiscard]] std::span<const TokenId> tokens_of(std::uint32_t block) const {
    return std::span(tokens_).subspan(std::size_t{block} * block_tokens_, block_tokens_);
  }

  void note(Undo::Kind kind, std::uint32_t block, std::uint32_t a = 0, std::uint32_t b = 0) {
    journal_.note({kind, space_, block, a, b});
  }

  Space space_;
  Journal& journal_;
  EventLog& events_;
  std::uint32_t sentinel_, block_tokens_;
  std::vector<Node> nodes_;      // the last is the sentinel of the circular free list
  std::vector<Name> names_;      // [blocks], valid where named
  std::vector<TokenId> tokens_;  // [blocks, block_tokens], valid where named
  HashChains index_;
  std::vector<Name> lost_names_;      // what the journal's kForget entries took, in their order
  std::vector<TokenId> lost_tokens_;  // alike
  std::uint32_t free_ = 0, cached_ = 0;
  std::uint64_t evictions_ = 0, surplus_ = 0;
};

}  // namespace octavo
