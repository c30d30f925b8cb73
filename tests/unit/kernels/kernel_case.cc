#include "unit/kernels/kernel_case.h"

#include "kernels/select.h"

namespace octavo {

#ifdef OCTAVO_TEST_SIMDE
extern const Kernels kEmulatedAvx512, kEmulatedAmx;
#endif

std::vector<const Kernels*> tables_under_test() {
  auto tables = runnable_kernels();
#ifdef OCTAVO_TEST_SIMDE
  tables.push_back(&kEmulatedAvx512);
  tables.push_back(&kEmulatedAmx);
#endif
  return tables;
}

Random::Random() : Random(std::random_device{}()) {}
Random::Random(std::uint64_t seed) : seed_(seed), engine_(seed) {}

float Random::normal(float spread) { return std::normal_distribution<float>(0, spread)(engine_); }

std::uint32_t Random::below(std::uint32_t limit) {
  return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(engine_);
}

std::vector<float> Random::row(std::size_t n, float spread) {
  std::vector<float> out(n);
  for (float& x : out) x = normal(spread);
  return out;
}

testing::AssertionResult same_bits(const float* want, const float* got, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (want[i] != want[i] && got[i] != got[i]) continue;
    if (std::bit_cast<std::uint32_t>(want[i]) != std::bit_cast<std::uint32_t>(got[i])) {
      return testing::AssertionFailure() << "at " << i << ": want " << want[i] << " (" << std::hexfloat << want[i]
                                         << "), got " << got[i];
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace octavo
