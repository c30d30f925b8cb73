// What happened to named blocks, as values: a router or a trace rebuilds from them which prefixes are cached here.
//
// Two blocks may hold equal tokens, but only one bears the name, so a name is stored once and removed once. Events of a
// plan exist once it is committed. Numbers are consecutive from 1: a gap tells a reader that it lost some.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/kv_types.h"

namespace octavo {

struct KvEvent {
  enum class Kind : std::uint8_t {
    kStored,   // consecutive blocks of one sequence can be found; `parent` names the block before the first
    kRemoved,  // one block cannot be found any more: its name was evicted, or its step failed
    kCleared,  // all names of all groups are gone; no hashes
  };
  Kind kind;
  std::uint64_t number = 0;
  GroupId group;
  BlockHash parent{};
  std::uint32_t first_block = 0;  // hashes[first_block ... + num_blocks)
  std::uint32_t num_blocks = 0;
  std::uint32_t first_token = 0;  // kStored: tokens[first_token ... + num_blocks * block_tokens)
};

struct KvEvents {
  std::vector<KvEvent> events;
  std::vector<BlockHash> hashes;
  std::vector<TokenId> tokens;

  [[nodiscard]] std::span<const BlockHash> hashes_of(const KvEvent& e) const {
    return std::span(hashes).subspan(e.first_block, e.num_blocks);
  }
  [[nodiscard]] std::span<const TokenId> tokens_of(const KvEvent& e, std::uint32_t block_tokens) const {
    return std::span(tokens).subspan(e.first_token, std::size_t{e.num_blocks} * block_tokens);
  }
  void clear() { events.clear(), hashes.clear(), tokens.clear(); }
};

}  // namespace octavo
