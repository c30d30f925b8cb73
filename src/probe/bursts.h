// Loops that do one kind of work and nothing else: what they reach is the peak.
#pragma once
#include <cstdint>

namespace octavo {

struct Burst {
  const char* kind;                 // "AVX-512 VNNI"
  std::uint64_t ops_per_iteration;  // a multiply and its add are two
  void (*run)(std::uint64_t iterations);
};

/// Adds up all words: reads `bytes` (a multiple of 64) once, in order, as fast as this core can. 64-byte aligned.
using ReadMemory = std::uint64_t (*)(const std::uint64_t* words, std::uint64_t bytes);

namespace portable {
extern const Burst kInt8, kF32;
[[nodiscard]] std::uint64_t read_memory(const std::uint64_t* words, std::uint64_t bytes);
}  // namespace portable
namespace avx2 {
extern const Burst kInt8, kF32;
[[nodiscard]] std::uint64_t read_memory(const std::uint64_t* words, std::uint64_t bytes);
}  // namespace avx2
namespace avx512 {
extern const Burst kInt8, kF32;
[[nodiscard]] std::uint64_t read_memory(const std::uint64_t* words, std::uint64_t bytes);
}  // namespace avx512
namespace avx512bf16 {
extern const Burst kBf16;
}

}  // namespace octavo
