#include "kernels/kernels.h"
#include "kernels/ref/math.h"

namespace octavo {

void fill_rope_table(const float* inv_freq, std::uint32_t half, std::uint32_t positions, float* out) {
  for (std::uint32_t pos = 0; pos < positions; ++pos) {
    for (std::uint32_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(pos) * inv_freq[i];
      *out++ = ref::cos(angle);
      *out++ = ref::sin(angle);
    }
  }
}

void fill_inv_freq(float base, std::uint32_t rot_dims, float* out) {
  for (std::uint32_t i = 0; i < rot_dims / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rot_dims);
    out[i] = 1.0F / static_cast<float>(ref::pow(base, exponent));
  }
}

}  // namespace octavo
