// Divisions and a root that give the bits of the compiler's without its checks, for operands in a safe range.
//
// Why: AdamW with bf16 moments moves so few bytes an element that the checks around every division and root of the
// compiler's cost bandwidth. Here one test of the moments stands for all of an element's operations. Not here: the
// approximations, which are instructions of the device, and what to do outside the range; both are the caller's.
// Compiles without CUDA, so that the argument below is tested where there is no GPU.
//
// Why they round correctly. Take significands as integers of 24 bits and a quotient's unit in the last place as 1.
//
// 1. x / c, c known beforehand. high is 1 / c rounded (through a double, which rounds once only: 1 / c is relatively
//    2^-49 or more from a midpoint, the double 2^-53 from 1 / c). x high + x low is x / c to 2^-23 before it is rounded
//    to q, so q is a neighbour of x / c, and the remainder x - c q is a float. The last operation rounds
//    q + (x - c q) high once. If high = (1 - e) / c this is e |x / c - q| off. A quotient of floats is no midpoint of
//    two: 2^(s + 1) x - (2 m + 1) c is whole and not 0, so x / c is t >= 1 / 2c from the nearest, 1/2 -+ t from q, and
//    is rounded to its right neighbour if |e| (1/2 + t) < t. |e| < 1 / (c + 1) is enough, and a rounded reciprocal has
//    |e| <= 2^-48 c. (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", IBM J.
//    Res. Dev. 34, 1990.)
// 2. x / y. A Newton step takes the approximation, within 1 ulp (PTX ISA, rcp.approx), to r = (1 - e) / y; x r is
//    corrected twice, the first time to a neighbour of x / y, and then as in 1. The tests find |e| < 1 / (y + 1) for
//    all 2^23 y and whatever approximation, but for y of ones only if it is approximated by a power of two.
// 3. The root. x r, r the approximation of its reciprocal, is corrected once. The tests find it right for all 2^24 x
//    of two binades and whatever approximation within 2^-22.9 (PTX ISA, rsqrt.approx), but for one approximation each
//    of 0x1.f82294p0 and 0x1.dd26e4p1.
// In these three cases PTX leaves open what the device approximates. But 2 is operation by operation what nvcc 13.0 has
// on sm_90 for __fdiv_rn (its subroutine, once operands are scaled), and 3 what it has for __fsqrt_rn; CUDA promises
// that these round correctly. kernels_gpu_check tries all significands on the device.
//
// Where. Powers of two change nothing while no value between overflows or loses bits below 2^-149. From the bounds
// below, m / c1 is in 2^[-80, 60], v / c2 in 2^[-90, 60], its root in 2^[-45, 30], the denominator in 2^[-45, 31], the
// direction in 2^[-111, 105], and the last bits of remainders are at least 2^-137 (v / c2), 2^-136 (root) and 2^-127
// (the other two). x low may lose bits: 2^-60 of q. Moments that are zero, tiny, huge, infinite or NaN must go the
// compiler's way.
#pragma once

#include <cmath>

#include "kernels/adamw.hpp"
#include "kernels/host_device.hpp"

namespace ebb::kernels::quick {

// One rounding each; a compiler may not merge them.
EBB_HOST_DEVICE inline float multiply(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
EBB_HOST_DEVICE inline float multiply_add(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return __fmaf_rn(a, b, c);
#else
  return std::fma(a, b, c);
#endif
}

/// 1 / c in two parts, high + low.
struct Reciprocal {
  float high, low;
};
inline Reciprocal reciprocal(float c) {
  const double r = 1 / static_cast<double>(c);
  const auto high = static_cast<float>(r);
  return {.high = high, .low = static_cast<float>(r - static_cast<double>(high))};
}

/// x / c; `r` is c's.
EBB_HOST_DEVICE inline float quotient(float x, float c, const Reciprocal& r) {
  const float q = multiply_add(x, r.high, multiply(x, r.low));
  return multiply_add(multiply_add(-c, q, x), r.high, q);
}

/// 1 / y, nearly always rounded correctly, from an approximation of it.
EBB_HOST_DEVICE inline float refined(float y, float approximation) {
  return multiply_add(multiply_add(-y, approximation, 1), approximation, approximation);
}
/// x / y from an approximation of 1 / y.
EBB_HOST_DEVICE inline float quotient(float x, float y, float approximation) {
  const float r = refined(y, approximation);
  float q = multiply(x, r);
  q = multiply_add(multiply_add(-y, q, x), r, q);
  return multiply_add(multiply_add(-y, q, x), r, q);
}

/// The root of x from an approximation of 1 / its root.
EBB_HOST_DEVICE inline float root(float x, float approximation) {
  const float g = multiply(x, approximation);
  return multiply_add(multiply_add(-g, g, x), multiply(approximation, 0.5F), g);
}

/// Whether the operations round correctly on an element's next moments, given constants that are `in_range`. Without
/// branches: all comparisons are made.
EBB_HOST_DEVICE inline bool in_range(float exp_avg, float exp_avg_sq) {
  const float size = fabsf(exp_avg);
  return (size >= 0x1p-80F) & (size <= 0x1p30F) & (exp_avg_sq >= 0x1p-90F) & (exp_avg_sq <= 0x1p30F);
}
inline bool in_range(const AdamwStep& s) {
  const auto fits = [](float c) { return c >= 0x1p-30F && c <= 1; };
  return fits(s.bias_correction1) && fits(s.bias_correction2) && s.epsilon >= 0 && s.epsilon <= 1;
}

/// What a step knows beforehand.
struct Constants {
  Reciprocal bias_correction1, bias_correction2;
  bool usable;
};
inline Constants constants(const AdamwStep& s) {
  return {.bias_correction1 = reciprocal(s.bias_correction1),
          .bias_correction2 = reciprocal(s.bias_correction2),
          .usable = in_range(s)};
}

}  // namespace ebb::kernels::quick
