#include <bit>
#include <cstdint>

#include "tensor/dequantize.h"

// Integers only: the results do not depend on the floating-point mode.
namespace octavo {

float f16_to_f32(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7FFFU;
  std::uint32_t bits = 0;
  if (magnitude > 0x7C00U) {
    bits = 0x7FC00000U | (magnitude << 13);  // NaN, quieted as the hardware does
  } else if (magnitude == 0x7C00U) {
    bits = 0x7F800000U;
  } else if (magnitude >= 0x0400U) {
    bits = (magnitude << 13) + (112U << 23);  // exponent bias 15 to 127
  } else if (magnitude != 0) {
    const auto shift = static_cast<std::uint32_t>(std::countl_zero(magnitude)) - 21;  // leading one to bit 10
    bits = ((113 - shift) << 23) + (((magnitude << shift) & 0x3FFU) << 13);
  }
  return std::bit_cast<float>(sign | bits);
}

std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
  } else if (magnitude >= 0x477FF000U) {  // 65520 and up round to infinity
    half = 0x7C00U;
  } else if (magnitude >= 0x38800000U) {  // 2^-14: normal
    half = (magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1)) >> 13;
  } else if (magnitude > 0x33000000U) {  // above 2^-25: subnormal, in units of 2^-24
    const std::uint32_t mantissa = (magnitude & 0x7FFFFFU) | 0x800000U;
    const std::uint32_t shift = 126 - (magnitude >> 23);
    const std::uint32_t below_half = (1U << (shift - 1)) - 1;
    half = (mantissa + below_half + ((mantissa >> shift) & 1)) >> shift;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float bf16_to_f32(std::uint16_t bf16) { return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16); }

std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  if (magnitude < 0x00800000U) return static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1)) >> 16);
}

}  // namespace octavo
