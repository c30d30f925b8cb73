// What this CPU offers and the operating system saves: the facts that `select` decides on.
#pragma once
#include <string>

namespace octavo {

/// The flags of CPUID, and of XGETBV which registers the system saves; the questions below join them.
struct CpuFeatures {
  bool fma = false, f16c = false, avx2 = false, avxvnni = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false, avx512vnni = false, avx512bf16 = false;
  bool amx_tile = false, amx_int8 = false, amx_bf16 = false;
  bool os_ymm = false, os_zmm = false, os_tiles = false;  // the system saves these registers
};

[[nodiscard]] CpuFeatures detect_cpu();

/// What a table lacks, as the banner says it: "this CPU has no AVX512F, AVX512VNNI"; empty if it can run.
[[nodiscard]] std::string missing_for_ref(const CpuFeatures& cpu);
[[nodiscard]] std::string missing_for_avx2(const CpuFeatures& cpu);
[[nodiscard]] std::string missing_for_avxvnni(const CpuFeatures& cpu);
[[nodiscard]] std::string missing_for_avx512(const CpuFeatures& cpu);
[[nodiscard]] std::string missing_for_avx512bf16(const CpuFeatures& cpu);
[[nodiscard]] std::string missing_for_amx(const CpuFeatures& cpu);

}  // namespace octavo
