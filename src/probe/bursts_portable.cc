// For CPUs without the vector instructions: independent chains of scalar multiply-adds.
#include <array>
#include <cstdint>

#include "probe/bursts.h"

namespace octavo::portable {
namespace {

template <class T>
void multiply_add(std::uint64_t iterations) {
  std::array<T, 8> sums{};
  T a = 3, b = 5;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    asm volatile("" : "+g"(a), "+g"(b));  // fresh operands, as far as the compiler knows
    for (T& sum : sums) sum += a * b;
  }
  for (T& sum : sums) asm volatile("" : : "g"(sum));
}

}  // namespace

std::uint64_t read_memory(const std::uint64_t* words, std::uint64_t bytes) {
  std::array<std::uint64_t, 8> sums{};
  for (std::uint64_t i = 0; i < bytes / sizeof *words; i += sums.size()) {
    for (std::uint64_t lane = 0; lane < sums.size(); ++lane) sums[lane] += words[i + lane];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : sums) sum += lane;
  return sum;
}

const Burst kInt8{"scalar integers", 16, multiply_add<std::int32_t>};
const Burst kF32{"scalar floats", 16, multiply_add<float>};

}  // namespace octavo::portable
