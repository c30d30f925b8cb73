#include "kernels/cpu_features.h"

#include <cpuid.h>

#include <cstdint>
#include <initializer_list>

namespace octavo {
namespace {

struct Leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf cpuid(unsigned leaf, unsigned subleaf) {
  Leaf out;
  __get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx);  // all zero beyond the highest leaf
  return out;
}

bool bit(unsigned word, int index) { return (word >> index & 1) != 0; }

/// XCR0; only valid if CPUID says OSXSAVE.
std::uint64_t xcr0() {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

struct Need {
  bool present;
  const char* name;
};

std::string missing(bool system_saves, const char* registers, std::initializer_list<Need> needs) {
  std::string names;
  for (const Need& need : needs) {
    if (!need.present) names += (names.empty() ? "" : ", ") + std::string(need.name);
  }
  if (!names.empty()) return "this CPU has no " + names;
  if (!system_saves) return std::string("the operating system does not save ") + registers + " registers";
  return {};
}

}  // namespace

CpuFeatures detect_cpu() {
  const Leaf basic = cpuid(1, 0), extended = cpuid(7, 0), extended1 = cpuid(7, 1);
  const std::uint64_t saved = bit(basic.ecx, 27) ? xcr0() : 0;
  constexpr std::uint64_t kYmm = 0x06, kZmm = 0xE6;  // XMM + YMM; these + opmask, ZMM high halves, ZMM 16-31
  constexpr std::uint64_t kTiles = 0x60000;          // their configuration and data
  CpuFeatures cpu;
  cpu.os_ymm = (saved & kYmm) == kYmm;
  cpu.os_zmm = (saved & kZmm) == kZmm;
  cpu.os_tiles = (saved & kTiles) == kTiles;
  cpu.fma = bit(basic.ecx, 12);
  cpu.f16c = bit(basic.ecx, 29);
  cpu.avx2 = bit(extended.ebx, 5);
  cpu.avx512f = bit(extended.ebx, 16);
  cpu.avx512dq = bit(extended.ebx, 17);
  cpu.avx512bw = bit(extended.ebx, 30);
  cpu.avx512vl = bit(extended.ebx, 31);
  cpu.avx512vnni = bit(extended.ecx, 11);
  cpu.avxvnni = extended.eax >= 1 && bit(extended1.eax, 4);
  cpu.amx_bf16 = bit(extended.edx, 22);
  cpu.amx_tile = bit(extended.edx, 24);
  cpu.amx_int8 = bit(extended.edx, 25);
  cpu.avx512bf16 = extended.eax >= 1 && bit(extended1.eax, 5);
  return cpu;
}

std::string missing_for_ref(const CpuFeatures& cpu) { return missing(cpu.os_ymm, "YMM", {{cpu.fma, "FMA"}}); }

std::string missing_for_avx2(const CpuFeatures& cpu) {
  return missing(cpu.os_ymm, "YMM", {{cpu.avx2, "AVX2"}, {cpu.fma, "FMA"}, {cpu.f16c, "F16C"}});
}

std::string missing_for_avxvnni(const CpuFeatures& cpu) {
  if (std::string why = missing_for_avx2(cpu); !why.empty()) return why;
  return missing(true, "YMM", {{cpu.avxvnni, "AVX_VNNI"}});
}

std::string missing_for_avx512(const CpuFeatures& cpu) {
  if (std::string why = missing_for_avx2(cpu); !why.empty()) return why;
  return missing(cpu.os_zmm, "ZMM",
                 {{cpu.avx512f, "AVX512F"},
                  {cpu.avx512bw, "AVX512BW"},
                  {cpu.avx512dq, "AVX512DQ"},
                  {cpu.avx512vl, "AVX512VL"},
                  {cpu.avx512vnni, "AVX512_VNNI"}});
}

std::string missing_for_avx512bf16(const CpuFeatures& cpu) {
  if (std::string why = missing_for_avx512(cpu); !why.empty()) return why;
  return missing(true, "ZMM", {{cpu.avx512bf16, "AVX512_BF16"}});
}

std::string missing_for_amx(const CpuFeatures& cpu) {
  if (std::string why = missing_for_avx512(cpu); !why.empty()) return why;
  return missing(cpu.os_tiles, "AMX tile",
                 {{cpu.amx_tile, "AMX_TILE"}, {cpu.amx_int8, "AMX_INT8"}, {cpu.amx_bf16, "AMX_BF16"}});
}

}  // namespace octavo
