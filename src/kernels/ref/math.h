// Our own elementary functions: one operation order, so one set of bits on every machine; no libm.
//
// exp and tanh are f32 polynomials, repeated lane by lane in x86/math16.h. log, sin and cos are rare, work in double
// and round once. Measured over dense sweeps (tests/unit/kernels/math_test.cc): exp 1 ulp, tanh 3 ulp, log, sin and
// cos 0.51 ulp. Threads: any; the f32 ones want a FloatMode.
#pragma once

namespace octavo::ref {

[[nodiscard]] float exp(float x);        // below -87.3365: +0; above 88.7228: inf; NaN stays
[[nodiscard]] float tanh(float x);       // as (e - 1) / (e + 1) with e - 1 = expm1(2|x|): small x keep their digits
[[nodiscard]] float silu(float x);       // x / (1 + exp(-x))
[[nodiscard]] float gelu_tanh(float x);  // 0.5 x (1 + tanh(...)) as in gelu_pytorch_tanh
[[nodiscard]] float soft_cap(float x, float cap);  // cap * tanh(x / cap)

[[nodiscard]] float log(float x);  // 0: -inf; negative: NaN
[[nodiscard]] float sin(float x);  // |x| < 2^20
[[nodiscard]] float cos(float x);

/// base^exponent for base > 0, correct to about 1e-14: the rotary frequencies.
[[nodiscard]] double pow(double base, double exponent);

}  // namespace octavo::ref
