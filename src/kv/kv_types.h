// Values of the KV bookkeeping: configuration in, views, events and counters out. No behaviour.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace octavo {

enum class Strategy : std::uint8_t { kPaged, kDynamic, kStatic };
enum class GroupKind : std::uint8_t { kFull, kWindow };

struct GroupSpec {
  GroupKind kind = GroupKind::kFull;
  std::uint32_t window_tokens = 0;  // kWindow: a query at p reads keys in (p - window, p]
  PoolId pool;                      // groups with equal block bytes may share a pool, hence one LRU
};

struct KvConfig {
  Strategy strategy = Strategy::kPaged;
  std::uint32_t block_tokens = 16;
  std::uint32_t max_seqs = 256;
  std::uint32_t max_model_len = 4096;  // kStatic reserves this much for every sequence
  bool prefix_caching = true;
  std::vector<GroupSpec> groups;
  std::vector<std::uint32_t> pool_blocks;  // per pool, the null block included
  std::uint32_t tier_slots = 0;            // 0: no swap
};

using BlockHash = std::array<std::byte, 32>;  // chained SHA-256

/// What is known of a sequence. The chain (one hash per full block, from a domain-tagged root of salt, adapter, model)
/// belongs to the sequence: each block is hashed once, when it fills, and never again for lookup, tier or router.
struct SeqTokens {
  std::span<const TokenId> ids;  // prompt first
  std::span<const BlockHash> chain;
};

/// A cached prefix, as a value: it pins nothing. admit() pins it, or answers false if it has gone since.
struct PrefixHit {
  std::uint32_t num_tokens = 0;   // in the pool; at most ids.size() - 1: a full hit recomputes its last block
  std::uint32_t tier_tokens = 0;  // further tokens that a tier could load instead of computing
};

/// One sequence in one group: blocks[i] holds positions from (first_page + i) * block_tokens. Valid until a next call.
struct TableView {
  std::uint32_t first_page = 0;  // > 0 once a window has passed
  std::span<const BlockId> blocks;
};

/// Block-granular events; one kStored may cover several consecutive blocks. Ranges index the batch's arrays.
struct KvEvent {
  enum class Kind : std::uint32_t { kStored, kRemoved, kCleared };
  std::uint64_t number;  // consecutive from 1, given at commit: an abandoned plan has no events
  Kind kind;
  GroupId group;
  std::uint32_t hashes_begin, num_hashes;  // kStored: hashes[hashes_begin - 1] is the parent, all zero for a root
  std::uint32_t tokens_begin, num_tokens;  // kStored: num_hashes * block_tokens
};

struct KvEventBatch {
  std::vector<KvEvent> events;
  std::vector<BlockHash> hashes;
  std::vector<TokenId> tokens;
};

struct KvCounters {
  std::uint32_t blocks_free = 0, blocks_used = 0, blocks_cached = 0;  // cached: free but still hashed
  std::uint64_t tokens_reserved = 0, tokens_used = 0;  // layout turns them into bytes; waste = difference
  std::uint64_t lookup_tokens = 0, hit_tokens = 0, evictions = 0, copies = 0, saves = 0, loads = 0;
};

}  // namespace octavo
