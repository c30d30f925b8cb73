#include "kv/kv_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace octavo {
namespace {

constexpr std::byte kPoison{0xFF};

/// Stamp of the next position. Never 0.
std::uint64_t stamp_after(std::uint64_t stamp, TokenId token) {
  const std::uint64_t next =
      (stamp ^ (static_cast<std::uint64_t>(token.value) + 1)) * 0x9E3779B97F4A7C15U + 0x2545F491U;
  return (next ^ next >> 31) | 1;
}

}  // namespace

KvGuard::KvGuard(KvStore& store, std::uint32_t num_slots)
    : store_(store),
      block_tokens_(store.groups().block_tokens),
      stamps_(store.bytes() / store.groups().page_bytes * block_tokens_),
      kept_((std::size_t{num_slots} + 1) * block_tokens_),
      use_(stamps_.size() / block_tokens_),
      page_(store.groups().page_bytes) {}

void KvGuard::follow(const BlockOps& ops) {
  for (const BlockMove& m : ops.saves) std::ranges::copy(stamps(m.block), kept(m.slot).begin());
  for (const BlockCopy& c : ops.copies) {
    std::ranges::copy(stamps(c.from), stamps(c.to).begin());
    use_[c.to.value] = Use::kFilled;
  }
  for (const BlockId b : ops.zeros) {
    std::ranges::fill(stamps(b), 0);
    use_[b.value] = Use::kFresh;
  }
  for (const BlockMove& m : ops.loads) {
    std::ranges::copy(kept(m.slot), stamps(m.block).begin());
    use_[m.block.value] = Use::kFilled;
  }
}

void KvGuard::bury(std::span<const BlockId> nobodys) {
  std::ranges::fill(page_, kPoison);
  for (const BlockId b : nobodys) {
    if (use_[b.value] == Use::kUntouched || use_[b.value] == Use::kBuried) continue;
    std::ranges::fill(stamps(b), 0);
    store_.write_page(b, page_);
    use_[b.value] = Use::kBuried;
  }
}

void KvGuard::poison_keys(BlockId block, GroupId group) {
  for (std::uint32_t layer = 0; layer < store_.groups().layers.size(); ++layer) {
    if (store_.groups().layers[layer].group != group) continue;
    const PagedKv kv = store_.view(layer);
    for (std::uint32_t head = 0; head < kv.num_kv_heads; ++head) {
      std::byte* keys = kv.base + block.value * kv.layer_stride_bytes + head * kv.head_stride_bytes;
      std::memset(keys, static_cast<int>(kPoison), kv.v_offset);
    }
  }
}

void KvGuard::store(const Row& row) {
  for (const BlockId b : row.blocks) {
    if (use_[b.value] != Use::kFresh) continue;
    poison_keys(b, row.group);
    use_[b.value] = Use::kFilled;
  }
  std::uint64_t stamp = 0;
  for (std::uint32_t pos = 0; pos < row.known.size(); ++pos) {
    stamp = stamp_after(stamp, row.known[pos]);
    if (pos < row.first_pos) continue;
    const std::size_t page = pos / block_tokens_ - std::size_t{row.first_page};
    if (page < row.blocks.size()) stamps(row.blocks[page])[pos % block_tokens_] = stamp;
  }
}

std::string KvGuard::find_fault(const Row& row) const {
  std::uint64_t stamp = 0;
  for (std::uint32_t pos = 0; pos < row.known.size(); ++pos) {
    stamp = stamp_after(stamp, row.known[pos]);
    const std::uint32_t page = pos / block_tokens_;
    if (page < row.first_page) continue;
    const auto where = [&] {
      return fmt::format("sequence {}, group {}, page {}", row.seq.value, row.group.value, page);
    };
    if (page - row.first_page >= row.blocks.size()) return where() + ": the table ends before it";
    const BlockId block = row.blocks[page - row.first_page];
    const std::uint64_t found = stamps_[std::size_t{block.value} * block_tokens_ + pos % block_tokens_];
    if (found == stamp) continue;
    const char* const holds = block == kNullBlock                 ? "is the null block"
                              : use_[block.value] == Use::kBuried ? "is nobody's"
                              : found == 0                        ? "holds nothing"
                                                                  : "holds something else";
    return fmt::format("{}: block {} {} at position {}", where(), block.value, holds, pos);
  }
  return {};
}

bool KvGuard::null_block_is_zero() {
  store_.read_page(kNullBlock, page_);
  return std::ranges::all_of(page_, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace octavo
