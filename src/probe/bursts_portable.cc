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

const Burst kInt8{"scalar integers", 16, multiply_add<std::int32_t>};
const Burst kF32{"scalar floats", 16, multiply_add<float>};

}  // namespace octavo::portable
