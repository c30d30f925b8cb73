// What the kernel tests share: the tables under test, random rows, comparison on bits.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace octavo {

/// Every table this machine can run, `ref` first, and the emulated AVX-512 one where the build has it.
[[nodiscard]] std::vector<const Kernels*> tables_under_test();

/// A fresh seed for each run, printed with every failure through SCOPED_TRACE.
class Random {
 public:
  Random();
  explicit Random(std::uint64_t seed);
  [[nodiscard]] std::string trace() const { return "seed " + std::to_string(seed_); }
  [[nodiscard]] float normal(float spread = 1.0F);
  [[nodiscard]] std::uint32_t below(std::uint32_t limit);
  [[nodiscard]] std::vector<float> row(std::size_t n, float spread = 1.0F);

 private:
  std::uint64_t seed_;
  std::mt19937_64 engine_;
};

/// Equal on bits, except that any NaN equals any NaN.
[[nodiscard]] testing::AssertionResult same_bits(const float* want, const float* got, std::size_t n);
[[nodiscard]] inline testing::AssertionResult same_bits(const std::vector<float>& want, const std::vector<float>& got) {
  if (want.size() != got.size())
    return testing::AssertionFailure() << want.size() << " and " << got.size() << " values";
  return same_bits(want.data(), got.data(), want.size());
}

}  // namespace octavo
