// Which kernel table runs: decided once at start from CPUID and what the operating system saves (XGETBV).
#pragma once
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "octavo/result.h"

namespace octavo {

struct KernelChoice {
  const Kernels* kernels = nullptr;
  std::vector<std::string> not_used;  // for the banner: "avx512: this CPU has no AVX512F"
};

/// The fastest table this machine can run; `wanted` ("ref", "avx2", "avxvnni", "avx512", "avx512bf16"; empty: best)
/// forces one by name. An impossible wish is refused with what is possible. The engine passes OCTAVO_ISA here.
[[nodiscard]] Result<KernelChoice> select_kernels(const std::string& wanted);

/// Every table this machine can run, `ref` first: for tests.
[[nodiscard]] std::vector<const Kernels*> runnable_kernels();

}  // namespace octavo
