// The numbers of the f32 polynomials, shared by ref/math.cc and x86/math16.h so that both give the same bits.
#pragma once

namespace octavo {

// exp(x) = 2^n (1 + q(r)), n = nearest(x / ln 2), r = x - n ln 2 in two steps (n * kLn2Hi is exact),
// q(r) = r + r^2 (c2 + c3 r + c4 r^2 + c5 r^3 + c6 r^4): minimax on |r| <= ln 2 / 2, error 2^-28 of exp.
inline constexpr float kLog2E = 0x1.715476p+0F;
inline constexpr float kRoundMagic = 0x1.8p+23F;  // adding it rounds to an integer and leaves that in the low bits
inline constexpr float kLn2Hi = 0x1.62e4p-1F, kLn2Lo = 0x1.7f7d1cp-20F;
inline constexpr float kExpC2 = 0x1.fffffcp-2F, kExpC3 = 0x1.555492p-3F, kExpC4 = 0x1.5558bp-5F,
                       kExpC5 = 0x1.123986p-7F, kExpC6 = 0x1.6a4cb4p-10F;
inline constexpr float kExpLow = -0x1.5d589ep+6F;  // below: +0 (the result would be denormal)
inline constexpr float kExpHigh = 0x1.62e42ep+6F;  // above: +inf

// tanh(x) for 2|x| above this is 1 in f32.
inline constexpr float kTanhMax = 20.0F;

// gelu_pytorch_tanh: 0.5 x (1 + tanh(kGeluBeta (x + kGeluKappa x^3))).
inline constexpr float kGeluBeta = 0x1.988454p-1F, kGeluKappa = 0x1.6e4e26p-5F;

}  // namespace octavo
