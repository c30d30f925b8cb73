// May the BF16 kernel use vdpbf16ps? The instruction's rounding order is not written down by the vendors, and on some
// CPUs it is slower than two FMAs, so it is tried at start.
#pragma once
#include <string>

namespace octavo {

/// Empty if vdpbf16ps gives the FMA kernel's bits on this CPU, and sooner; else what is wrong. Measures once, well
/// under a millisecond; later calls return the first answer. Only for CPUs with AVX512_BF16. Any thread.
[[nodiscard]] const std::string& bf16_trial();

}  // namespace octavo
