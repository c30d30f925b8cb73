#include "engine/memory_use.h"

#include <algorithm>
#include <span>

#include "base/resident.h"
#include "engine/resources.h"

namespace octavo {
namespace {

using Range = std::vector<std::span<const std::byte>>;

Range range_of(std::span<const std::byte> bytes) { return {bytes}; }

Range range_of(const std::vector<std::span<std::byte>>& parts) { return {parts.begin(), parts.end()}; }

}  // namespace

std::vector<MemoryUse> memory_use(const EngineResources& r) {
  enum : std::size_t { kWeights, kActivations, kPool, kSwap };
  const std::vector<Range> ranges = {range_of(r.weights->packed()), range_of(r.model->memory()),
                                     range_of(r.store->memory()), r.host ? range_of(r.host->memory()) : Range()};
  const ResidentMemory resident = resident_memory(ranges);
  const HeapUse& heap = r.heap;
  const std::uint64_t known = heap.tokenizer + heap.sampling + heap.bookkeeping;
  const auto actual = [&](const std::string& tag) -> std::uint64_t {
    if (tag == "weights") return resident.ranges[kWeights];
    if (tag == "activations") return resident.ranges[kActivations];
    if (tag == "kv pool") return resident.ranges[kPool];
    if (tag == "swap") return resident.ranges[kSwap];
    if (tag == "kv bookkeeping") return heap.bookkeeping;
    if (tag == "tokenizer") return heap.tokenizer;
    if (tag == "sampling") return heap.sampling;
    if (tag == "code") return resident.files;
    if (tag == "stacks") return resident.stacks;
    if (tag == "page tables") return resident.page_tables;
    return resident.other - std::min(resident.other, known);  // requests, and all else on the heap
  };
  std::vector<MemoryUse> out;
  for (const MemoryTag& tag : r.report.memory.tags) out.push_back({tag.tag, tag.bytes, actual(tag.tag)});
  return out;
}

}  // namespace octavo
