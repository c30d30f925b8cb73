// Debug builds: nobody reads a block that is not his. Checks the blocks themselves, whatever the bookkeeping believes.
//
// Poison: every byte of a block that nobody owns and nobody can find is 0xFF, a NaN of every KV type; the K of a fresh
// block, too. Its V is zero, for a masked lane multiplies V by +0; what a masked lane makes of K must never be seen.
// Stamps: beside every position of every block stands a hash of all tokens of its sequence up to there. They are
// written when a row stores its tokens and travel with copies, saves and loads, so that a table that attention is about
// to read either holds that sequence at those positions, or is faulty. Threads: the engine thread, while no kernel
// runs. Memory: 8 bytes per token of the pools.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "kv/block_ops.h"
#include "kv/kv_store.h"

namespace octavo {

#ifdef NDEBUG
inline constexpr bool kGuarded = false;
#else
inline constexpr bool kGuarded = true;
#endif

class KvGuard {
 public:
  KvGuard(KvStore& store, std::uint32_t num_slots);

  /// A row as one group addresses it: what its attention is about to read.
  struct Row {
    SeqId seq;
    GroupId group;
    std::uint32_t first_pos;   // of the tokens that it stores
    std::uint32_t first_page;  // blocks[i] holds positions from (first_page + i) * block_tokens
    std::span<const BlockId> blocks;
    std::span<const TokenId> known;  // all tokens of the sequence up to the row's end
  };

  void follow(const BlockOps& ops);             // once the store has saved, copied and zeroed
  void bury(std::span<const BlockId> nobodys);  // free blocks without a name; poisons those that were used
  void store(const Row& row);                   // of every row, before any is asked about
  /// Empty, or a sentence: sequence, group, page, block, and what is wrong with it.
  [[nodiscard]] std::string find_fault(const Row& row) const;
  [[nodiscard]] bool null_block_is_zero();

 private:
  enum class Use : std::uint8_t { kUntouched, kFresh, kFilled, kBuried };

  [[nodiscard]] std::span<std::uint64_t> stamps(BlockId block) {
    return std::span(stamps_).subspan(std::size_t{block.value} * block_tokens_, block_tokens_);
  }
  [[nodiscard]] std::span<std::uint64_t> kept(HostSlot slot) {
    return std::span(kept_).subspan(std::size_t{slot.value} * block_tokens_, block_tokens_);
  }
  void poison_keys(BlockId block, GroupId group);

  KvStore& store_;
  std::uint32_t block_tokens_;
  std::vector<std::uint64_t> stamps_;  // [blocks, block_tokens]; 0: holds nothing
  std::vector<std::uint64_t> kept_;    // [slots + 1, block_tokens]: those of saved blocks
  std::vector<Use> use_;               // [blocks]
  std::vector<std::byte> page_;        // [page_bytes]
};

}  // namespace octavo
