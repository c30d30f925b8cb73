// The bytes behind the block ids: one pool of equal pages, laid out by kv/layout.
//
// Slice s of all pages is one array [blocks, slice_bytes]; a layer is a slice, or a part of one. Block 0, the null
// block, is never written and always zero. Memory is anonymous and becomes resident as blocks are first used, or before
// (base/prefault.h).
// Threads: view() any; zero() and copy() by one thread while no kernel runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/memory.h"
#include "kv/block_ops.h"
#include "kv/layout.h"
#include "tensor/paged_kv.h"

namespace octavo {

class KvStore {
 public:
  /// `num_blocks` includes the null block.
  KvStore(KvGroups groups, std::uint32_t num_blocks);

  [[nodiscard]] const KvGroups& groups() const { return groups_; }
  [[nodiscard]] PagedKv view(std::uint32_t layer) const;
  [[nodiscard]] std::uint64_t bytes() const { return memory_.size(); }
  [[nodiscard]] std::span<std::byte> memory() const { return {memory_.data(), memory_.size()}; }

  void zero(std::span<const BlockId> blocks);    // every byte of the page
  void copy(std::span<const BlockCopy> copies);  // whole pages
  // One page, slices one after another: [page_bytes]. Any thread, for blocks that nobody else touches.
  void read_page(BlockId block, std::span<std::byte> to) const;
  void write_page(BlockId block, std::span<const std::byte> from);

 private:
  [[nodiscard]] std::byte* at(std::uint32_t slice, BlockId block) const;

  KvGroups groups_;
  std::uint32_t num_blocks_;
  AlignedBuffer memory_;
};

}  // namespace octavo
