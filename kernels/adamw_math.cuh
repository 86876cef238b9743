// The arithmetic of AdamW on the device, operation by operation as adamw_ref.cpp has it. The _rn intrinsics keep the
// compiler from contracting a multiplication and an addition into one rounding, so both give the same bits.
#pragma once

#include "kernels/adamw.hpp"
#include "kernels/quick_division.hpp"

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

// The weight's step with moments that are already the next ones.
__device__ inline float stepped(float p, float m, float v, const AdamwStep& s) {
  const float denominator = __fadd_rn(__fsqrt_rn(__fdiv_rn(v, s.bias_correction2)), s.epsilon);
  return next_master(p, __fdiv_rn(__fdiv_rn(m, s.bias_correction1), denominator), s);
}

__device__ inline void adamw_update(float& p, float g, float& m, float& v, const AdamwStep& s) {
  m = next_exp_avg(m, g, s);
  v = next_exp_avg_sq(v, g, s);
  p = stepped(p, m, v, s);
}

namespace quick {

__device__ inline float quotient(float x, float y) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  return quotient(x, y, r);
}
__device__ inline float root(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return root(x, r);
}

}  // namespace quick

// Four elements, the same bits, without the compiler's checks where quick_division.hpp allows it for all four.
__device__ inline void adamw_update_quickly(float (&p)[4], const float (&g)[4], float (&m)[4], float (&v)[4],
                                            const AdamwStep& s, const quick::Constants& c) {
  bool allowed = c.usable;
  float denominator[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    m[k] = next_exp_avg(m[k], g[k], s);
    v[k] = next_exp_avg_sq(v[k], g[k], s);
    const float corrected = quick::quotient(v[k], s.bias_correction2, c.bias_correction2);
    denominator[k] = __fadd_rn(quick::root(corrected), s.epsilon);
    allowed = quick::in_range(m[k], v[k]) && allowed;
  }
  if (allowed) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float corrected = quick::quotient(m[k], s.bias_correction1, c.bias_correction1);
      p[k] = next_master(p[k], quick::quotient(corrected, denominator[k]), s);
    }
    return;
  }
  // Rolled, with selections in place of indices: unrolled it would need more registers than all the rest.
#pragma unroll 1
  for (int k = 0; k < 4; ++k) {
    const float pk = k == 0 ? p[0] : k == 1 ? p[1] : k == 2 ? p[2] : p[3];
    const float mk = k == 0 ? m[0] : k == 1 ? m[1] : k == 2 ? m[2] : m[3];
    const float vk = k == 0 ? v[0] : k == 1 ? v[1] : k == 2 ? v[2] : v[3];
    const float next = stepped(pk, mk, vk, s);
#pragma unroll
    for (int n = 0; n < 4; ++n) p[n] = n == k ? next : p[n];
  }
}

}  // namespace ebb::kernels
