// The arithmetic of AdamW on the device, operation by operation as adamw_ref.cpp has it. The _rn intrinsics keep the
// compiler from contracting a multiplication and an addition into one rounding, so both give the same bits.
#pragma once

#include "kernels/adamw.hpp"

namespace ebb::kernels {

__device__ inline float next_exp_avg(float m, float g, const AdamwStep& s) {
  return __fadd_rn(__fmul_rn(s.beta1, m), __fmul_rn(s.one_minus_beta1, g));
}

__device__ inline float next_exp_avg_sq(float v, float g, const AdamwStep& s) {
  return __fadd_rn(__fmul_rn(s.beta2, v), __fmul_rn(__fmul_rn(s.one_minus_beta2, g), g));
}

__device__ inline float next_master(float p, float direction, const AdamwStep& s) {
  return __fsub_rn(p, __fmul_rn(s.learning_rate, __fadd_rn(direction, __fmul_rn(s.weight_decay, p))));
}

/// Reciprocals of the bias corrections in two parts, high + low, and whether quick_update may be used at all.
struct Reciprocals {
  float high1, low1, high2, low2;
  bool usable;
};
inline Reciprocals reciprocals(const AdamwStep& s) {
  const auto split = [](float c, float& high, float& low) {
    const double r = 1 / static_cast<double>(c);
    high = static_cast<float>(r);
    low = static_cast<float>(r - static_cast<double>(high));
  };
  Reciprocals r{};
  split(s.bias_correction1, r.high1, r.low1);
  split(s.bias_correction2, r.high2, r.low2);
  const auto fits = [](float c) { return c >= 0x1p-30F && c <= 1; };
  r.usable = fits(s.bias_correction1) && fits(s.bias_correction2) && s.epsilon >= 0 && s.epsilon <= 1;
  return r;
}

// x / c, rounded to nearest, with high + low = 1 / c.
__device__ inline float quotient(float x, float c, float high, float low) {
  const float q = __fmaf_rn(x, high, __fmul_rn(x, low));
  return __fmaf_rn(__fmaf_rn(-c, q, x), high, q);
}
__device__ inline float quotient(float x, float y) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  r = __fmaf_rn(__fmaf_rn(-y, r, 1), r, r);
  float q = __fmul_rn(x, r);
  q = __fmaf_rn(__fmaf_rn(-y, q, x), r, q);
  return __fmaf_rn(__fmaf_rn(-y, q, x), r, q);
}
__device__ inline float root(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  const float g = __fmul_rn(x, r);
  return __fmaf_rn(__fmaf_rn(-g, g, x), __fmul_rn(r, 0.5F), g);
}

__device__ inline void adamw_update(float& p, float g, float& m, float& v, const AdamwStep& s) {
  m = next_exp_avg(m, g, s);
  v = next_exp_avg_sq(v, g, s);
  const float denominator = __fadd_rn(__fsqrt_rn(__fdiv_rn(v, s.bias_correction2)), s.epsilon);
  p = next_master(p, __fdiv_rn(__fdiv_rn(m, s.bias_correction1), denominator), s);
}

template <bool kQuick>
__device__ inline void adamw_update4(float (&p)[4], const float (&g)[4], float (&m)[4], float (&v)[4],
                                     const AdamwStep& s, const Reciprocals& r) {
  if constexpr (kQuick) {
    bool quick = r.usable;
    float d[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      m[k] = next_exp_avg(m[k], g[k], s);
      v[k] = next_exp_avg_sq(v[k], g[k], s);
      d[k] = __fadd_rn(root(quotient(v[k], s.bias_correction2, r.high2, r.low2)), s.epsilon);
      const float size = fabsf(m[k]);
      quick = quick && size >= 0x1p-80F && size <= 0x1p30F && v[k] >= 0x1p-90F && v[k] <= 0x1p30F;
    }
    if (quick) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        p[k] = next_master(p[k], quotient(quotient(m[k], s.bias_correction1, r.high1, r.low1), d[k]), s);
      }
      return;
    }
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
      const float pk = k == 0 ? p[0] : k == 1 ? p[1] : k == 2 ? p[2] : p[3];
      const float mk = k == 0 ? m[0] : k == 1 ? m[1] : k == 2 ? m[2] : m[3];
      const float vk = k == 0 ? v[0] : k == 1 ? v[1] : k == 2 ? v[2] : v[3];
      const float denominator = __fadd_rn(__fsqrt_rn(__fdiv_rn(vk, s.bias_correction2)), s.epsilon);
      const float next = next_master(pk, __fdiv_rn(__fdiv_rn(mk, s.bias_correction1), denominator), s);
#pragma unroll
      for (int n = 0; n < 4; ++n) p[n] = n == k ? next : p[n];
    }
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) adamw_update(p[k], g[k], m[k], v[k], s);
  }
}

}  // namespace ebb::kernels
