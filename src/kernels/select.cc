#include "kernels/select.h"

#include <utility>

#include "kernels/amx_trial.h"
#include "kernels/bf16_trial.h"
#include "kernels/cpu_features.h"
#include "kernels/entries.h"

namespace octavo {
namespace {

/// The entries of one instruction set.
#define OCTAVO_KERNEL_TABLE(isa)                                                                                     \
  Kernels {                                                                                                          \
    .name = #isa, .prepare_rows = isa::prepare_rows, .gemm = isa::gemm, .unpack_row = ref::unpack_row,               \
    .rms_norm = isa::rms_norm, .add = isa::add, .scale = isa::scale, .gated = isa::gated, .soft_cap = isa::soft_cap, \
    .rope = isa::rope, .store_kv = isa::store_kv, .attend = isa::attend, .merge = isa::merge,                        \
    .log_sum_exp = isa::log_sum_exp, .largest = isa::largest, .not_below = isa::not_below, .top = isa::top,          \
    .exp_sum = isa::exp_sum,                                                                                         \
  }

constexpr Kernels kRef = OCTAVO_KERNEL_TABLE(ref);
constexpr Kernels kAvx2 = OCTAVO_KERNEL_TABLE(avx2);
constexpr Kernels kAvx512 = OCTAVO_KERNEL_TABLE(avx512);

#undef OCTAVO_KERNEL_TABLE

constexpr Kernels with_gemm(Kernels table, const char* name, decltype(Kernels::gemm) gemm) {
  table.name = name;
  table.gemm = gemm;
  return table;
}
constexpr Kernels kAvxVnni = with_gemm(kAvx2, "avxvnni", avxvnni::gemm);
constexpr Kernels kAvx512Bf16 = with_gemm(kAvx512, "avx512bf16", avx512bf16::gemm);

constexpr Kernels with_tiles() {
  Kernels table = with_gemm(kAvx512, "amx", amx::gemm);
  table.attend = amx::attend;
  return table;
}
constexpr Kernels kAmx = with_tiles();

struct Table {
  const Kernels* kernels;
  std::string missing;  // why it cannot run here; empty: it can
};

/// Slowest first.
std::vector<Table> tables() {
  const CpuFeatures cpu = detect_cpu();
  std::string bf16 = missing_for_avx512bf16(cpu), tiles = missing_for_amx(cpu);
  if (bf16.empty()) bf16 = bf16_trial();
  if (tiles.empty()) tiles = amx_trial();
  return {{&kRef, missing_for_ref(cpu)},       {&kAvx2, missing_for_avx2(cpu)}, {&kAvxVnni, missing_for_avxvnni(cpu)},
          {&kAvx512, missing_for_avx512(cpu)}, {&kAvx512Bf16, std::move(bf16)}, {&kAmx, std::move(tiles)}};
}

}  // namespace

std::vector<const Kernels*> runnable_kernels() {
  std::vector<const Kernels*> out;
  for (const auto& table : tables()) {
    if (table.missing.empty()) out.push_back(table.kernels);
  }
  return out;
}

Result<KernelChoice> select_kernels(const std::string& wanted) {
  KernelChoice choice;
  std::string possible;
  std::string refused;
  for (const auto& [kernels, missing] : tables()) {
    const std::string name = kernels->name;
    if (!missing.empty()) {
      choice.not_used.push_back(name + ": " + missing);
      if (name == wanted) refused = missing;
      continue;
    }
    possible += (possible.empty() ? "" : ", ") + name;
    if (wanted.empty() || wanted == name) choice.kernels = kernels;  // the last one that may run is the fastest
  }
  if (choice.kernels != nullptr) return choice;
  const std::string can = possible.empty() ? "no kernels can run on this CPU" : "possible here: " + possible;
  if (wanted.empty()) return Error{ErrorCode::kUnsupported, can + "; Octavo needs FMA", "OCTAVO_ISA"};
  const std::string why = refused.empty() ? "is not an instruction set Octavo knows" : "cannot run: " + refused;
  return Error{ErrorCode::kInvalidArgument, "OCTAVO_ISA '" + wanted + "' " + why + "; " + can, "OCTAVO_ISA"};
}

}  // namespace octavo
