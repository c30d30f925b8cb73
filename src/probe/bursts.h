// Loops that do one kind of arithmetic and nothing else, on registers: what they reach is the peak.
#pragma once
#include <cstdint>

namespace octavo {

struct Burst {
  const char* kind;                 // "AVX-512 VNNI"
  std::uint64_t ops_per_iteration;  // a multiply and its add are two
  void (*run)(std::uint64_t iterations);
};

namespace portable {
extern const Burst kInt8, kF32;
}
namespace avx2 {
extern const Burst kInt8, kF32;
}
namespace avx512 {
extern const Burst kInt8, kF32;
}

/// Adds up all words: reads `bytes` (a multiple of 64) once, in order, as fast as this core can.
[[nodiscard]] std::uint64_t read_memory(const std::uint64_t* words, std::uint64_t bytes);

}  // namespace octavo
