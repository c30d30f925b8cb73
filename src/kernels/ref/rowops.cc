#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/entries.h"
#include "kernels/ref/lanes.h"
#include "kernels/ref/math.h"
#include "tensor/dequantize.h"

namespace octavo::ref {

void rms_norm(const float* x, const float* gain, float eps, std::uint32_t n, float* out) {
  Lanes squares;
  for (std::uint32_t i = 0; i < n; ++i) squares[i] = std::fma(x[i], x[i], squares[i]);
  const float mean = squares.sum() / static_cast<float>(n);
  const float inverse = 1.0F / std::sqrt(mean + eps);
  for (std::uint32_t i = 0; i < n; ++i) out[i] = (x[i] * inverse) * gain[i];
}

void add(float* x, const float* y, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) x[i] = x[i] + y[i];
}

void scale(float* x, float factor, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) x[i] = x[i] * factor;
}

void gated(Activation act, const float* gate, const float* up, std::uint32_t n, float* out) {
  for (std::uint32_t i = 0; i < n; ++i) {
    out[i] = (act == Activation::kSilu ? silu(gate[i]) : gelu_tanh(gate[i])) * up[i];
  }
}

void soft_cap(float* x, float cap, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) x[i] = soft_cap(x[i], cap);
}

void rope(float* heads, std::uint32_t num_heads, std::uint32_t head_dim, const RopeTable& table, std::uint32_t pos) {
  const std::uint32_t half = table.rot_dims / 2;
  const float* cos_sin = table.cos_sin + std::uint64_t{pos} * table.rot_dims;
  for (std::uint32_t h = 0; h < num_heads; ++h) {
    float* head = heads + std::uint64_t{h} * head_dim;
    for (std::uint32_t i = 0; i < half; ++i) {
      const float x0 = head[i], x1 = head[half + i], c = cos_sin[2 * i], s = cos_sin[2 * i + 1];
      head[i] = std::fma(x0, c, -(x1 * s));
      head[half + i] = std::fma(x1, c, x0 * s);
    }
  }
}

}  // namespace octavo::ref
