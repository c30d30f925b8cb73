// Host memory for the blocks of swapped sequences: whole pages, all layers, each with a checksum.
//
// Saves are done when save() returns: the step hands their blocks to others. Loads run on a thread of their own while
// the step computes rows, which touch none of their blocks. Memory is anonymous and becomes resident when first used.
// Threads: one caller. Between start_loads and finish_loads the caller leaves slots and loaded blocks alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/memory.h"
#include "base/thread_pool.h"
#include "kv/block_ops.h"
#include "kv/kv_store.h"

namespace octavo {

class KvHostStore {
 public:
  /// Slots 1 ... num_slots.
  KvHostStore(KvStore& device, std::uint32_t num_slots);
  ~KvHostStore();

  void save(std::span<const BlockMove> moves, ThreadPool& pool);
  void start_loads(std::span<const BlockMove> moves);  // which stay where they are until they are finished
  /// Waits. Sequences whose slots are not what was saved are appended to `failed`.
  void finish_loads(std::vector<SeqId>& failed);

  [[nodiscard]] std::uint32_t num_slots() const { return num_slots_; }
  [[nodiscard]] std::span<const std::byte> memory() const { return {memory_.data(), memory_.size()}; }
  [[nodiscard]] std::span<std::byte> page(HostSlot slot) const;

 private:
  class Mover;

  KvStore& device_;
  std::uint32_t num_slots_;
  AlignedBuffer memory_;
  std::vector<std::uint64_t> checksums_;  // [slots]
  std::unique_ptr<Mover> mover_;
};

}  // namespace octavo
