#include "kv/kv_store.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace octavo {

static_assert(kLayoutCellTokens == kCellTokens);

KvStore::KvStore(KvGroups groups, std::uint32_t num_blocks)
    : groups_(std::move(groups)), num_blocks_(num_blocks), memory_(groups_.page_bytes * num_blocks) {}

std::byte* KvStore::at(std::uint32_t slice, BlockId block) const {
  return memory_.data() + (std::uint64_t{slice} * num_blocks_ + block.value) * groups_.slice_bytes();
}

PagedKv KvStore::view(std::uint32_t layer) const {
  const KvPlacement& p = groups_.layers[layer];
  PagedKv kv;
  kv.base = at(p.slice, kNullBlock) + p.offset;
  kv.layer_stride_bytes = groups_.slice_bytes();
  kv.head_stride_bytes = p.layout.head_bytes;
  kv.k_cell_bytes = p.layout.k_cell_bytes;
  kv.v_cell_bytes = p.layout.v_cell_bytes;
  kv.v_offset = p.layout.v_offset;
  kv.block_tokens = groups_.block_tokens;
  kv.num_kv_heads = groups_.shapes[layer].num_kv_heads;
  kv.head_dim = groups_.shapes[layer].head_dim;
  kv.type = groups_.type;
  return kv;
}

void KvStore::zero(std::span<const BlockId> blocks) {
  for (std::uint32_t slice = 0; slice < groups_.num_slices; ++slice) {
    for (BlockId b : blocks) {
      OCTAVO_CHECK(b != kNullBlock && b.value < num_blocks_, "only blocks of the pool are written");
      std::memset(at(slice, b), 0, groups_.slice_bytes());
    }
  }
}

void KvStore::copy(std::span<const BlockCopy> copies) {
  for (std::uint32_t slice = 0; slice < groups_.num_slices; ++slice) {
    for (const BlockCopy& c : copies) {
      OCTAVO_CHECK(c.to != kNullBlock && c.to.value < num_blocks_ && c.from.value < num_blocks_,
                   "only blocks of the pool are copied");
      std::memcpy(at(slice, c.to), at(slice, c.from), groups_.slice_bytes());
    }
  }
}

void KvStore::read_page(BlockId block, std::span<std::byte> to) const {
  const std::uint64_t bytes = groups_.slice_bytes();
  for (std::uint32_t s = 0; s < groups_.num_slices; ++s) std::memcpy(to.data() + s * bytes, at(s, block), bytes);
}

void KvStore::write_page(BlockId block, std::span<const std::byte> from) {
  OCTAVO_CHECK(block != kNullBlock && block.value < num_blocks_, "only blocks of the pool are written");
  const std::uint64_t bytes = groups_.slice_bytes();
  for (std::uint32_t s = 0; s < groups_.num_slices; ++s) std::memcpy(at(s, block), from.data() + s * bytes, bytes);
}

}  // namespace octavo
