// Values of the KV bookkeeping: configuration in, views and counters out. No behaviour.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "octavo/config.h"

namespace octavo {

using BlockHash = std::array<std::byte, 32>;  // chained SHA-256

struct GroupSpec {
  std::uint32_t window_tokens = 0;  // 0: full attention; else a query at p reads keys in (p - window, p]
};

struct KvConfig {
  std::uint32_t block_tokens = 16;
  std::uint32_t num_blocks = 0;  // of the one pool, the null block included
  std::vector<GroupSpec> groups;
  std::uint32_t max_seqs = 64;          // that hold blocks at a time
  std::uint32_t max_model_len = 4096;   // the longest table, in tokens
  std::uint32_t max_step_tokens = 512;  // the most one sequence computes in one step: what a window must keep
  bool prefix_caching = false;          // paged memory only
  KvMemory memory = KvMemory::kPaged;
  std::uint32_t chunk_tokens = 256;  // by which a dynamic run grows
  std::uint32_t host_blocks = 0;     // slots of the host pool, to which sequences can be swapped
  bool events = false;               // kept until take_events
};

/// What is known of a sequence. The chain (kv/block_hash.h, one hash per full block) belongs to the sequence: each
/// block is hashed once, when it fills, and never again. It may be empty when prefix caching is off.
struct SeqTokens {
  std::span<const TokenId> ids;  // prompt first
  std::span<const BlockHash> chain;
  BlockHash root{};  // the name before the first
};

/// A cached prefix, as a value: it pins nothing. admit() pins it, in the same plan.
struct PrefixHit {
  std::uint32_t num_tokens = 0;     // whole blocks, at most ids.size() - 1: a full hit recomputes its last block
  std::uint32_t blocks_in_use = 0;  // of those to pin, how many are held by others already: they cost no free block
};

/// One sequence in one group: blocks[i] holds positions from (first_page + i) * block_tokens. Valid until a next call.
/// A run has blocks beyond the last token.
struct TableView {
  std::uint32_t first_page = 0;  // > 0 once a window has passed
  std::span<const BlockId> blocks;
};

struct KvCounters {
  std::uint32_t blocks_total = 0;   // without the null block
  std::uint32_t blocks_free = 0;    // cached ones included
  std::uint32_t blocks_cached = 0;  // free, but still found by a lookup
  std::uint32_t host_total = 0, host_free = 0;
  // By committed plans:
  std::uint64_t hit_tokens = 0;  // taken from the cache
  std::uint64_t evictions = 0;   // cached blocks given to another owner
  std::uint64_t copies = 0;      // of shared blocks on a write, and of runs that moved
  std::uint64_t moved_runs = 0;
};

/// Where the blocks are, counted in token places of one group: kv/layout turns them into bytes.
///   reserved = used + internal waste       free = usable by the strategy + external waste
struct KvUsage {
  std::uint64_t reserved = 0;  // of blocks with an owner; a shared block counts once
  std::uint64_t used = 0;      // of those, hold the KV of a live token
  std::uint64_t external = 0;  // of free blocks, in runs too short for what the strategy takes at once
  [[nodiscard]] std::uint64_t internal() const { return reserved - used; }
};

}  // namespace octavo
