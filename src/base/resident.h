// What of this process is resident, by purpose: the kernel's own account (/proc/self/smaps), mapping by mapping.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

struct ResidentMemory {
  std::uint64_t total = 0;            // RSS
  std::vector<std::uint64_t> ranges;  // as asked for
  std::uint64_t files = 0;            // program, libraries and other files, outside of the ranges
  std::uint64_t stacks = 0;           // of all threads
  std::uint64_t other = 0;            // heap
  std::uint64_t page_tables = 0;      // the kernel's, not part of RSS
};

/// A mapping counts for the first of `ranges` that touches it: they are mappings of their own (AlignedBuffer, FileMap).
/// Zeros where the kernel does not tell. Walks all page tables: for metrics, never in a step.
[[nodiscard]] ResidentMemory resident_memory(std::span<const std::vector<std::span<const std::byte>>> ranges);

/// Resident now, all of it and what is of no file: cheap.
[[nodiscard]] std::uint64_t resident_bytes();
[[nodiscard]] std::uint64_t resident_anonymous_bytes();

/// Bytes that the heap has given out.
[[nodiscard]] std::uint64_t heap_bytes();

}  // namespace octavo
