// The AVX-512 kernels on any x86-64 with AVX2: SIMDe replaces the intrinsics, everything else is the shipped source.
#include "unit/kernels/simde/avx512_shim.h"

// Another namespace, so that this and the real avx512 live in one program.
#define avx512 avx512_emulated
#include "kernels/x86/v16_avx512.h"
//
#include "kernels/x86/attention_entries.h"
#include "kernels/x86/logits_impl.h"
#include "kernels/x86/rowops_impl.h"

namespace octavo::amx_emulated {
void attend(const PagedKv& kv, const AttnSpec& spec, const KvRow& row, const AttnTask& task, const float* q, float* out,
            float* states, std::byte* scratch);
}

namespace octavo {

extern const Kernels kEmulatedAvx512, kEmulatedAmx;
const Kernels kEmulatedAvx512 = {.name = "avx512 (emulated)",
                                 .prepare_rows = nullptr,
                                 .gemm = nullptr,
                                 .unpack_row = nullptr,
                                 .rms_norm = avx512::rms_norm,
                                 .add = avx512::add,
                                 .scale = avx512::scale,
                                 .gated = avx512::gated,
                                 .soft_cap = avx512::soft_cap,
                                 .rope = avx512::rope,
                                 .store_kv = avx512::store_kv,
                                 .attend = avx512::attend,
                                 .merge = avx512::merge,
                                 .log_sum_exp = avx512::log_sum_exp,
                                 .largest = avx512::largest,
                                 .not_below = avx512::not_below,
                                 .top = avx512::top,
                                 .exp_sum = avx512::exp_sum};

static constexpr Kernels with_tiles(Kernels table) {
  table.name = "amx (emulated)";
  table.attend = amx_emulated::attend;
  return table;
}
const Kernels kEmulatedAmx = with_tiles(kEmulatedAvx512);

}  // namespace octavo
