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

__device__ inline void adamw_update(float& p, float g, float& m, float& v, const AdamwStep& s) {
  m = next_exp_avg(m, g, s);
  v = next_exp_avg_sq(v, g, s);
  const float denominator = __fadd_rn(__fsqrt_rn(__fdiv_rn(v, s.bias_correction2)), s.epsilon);
  p = next_master(p, __fdiv_rn(__fdiv_rn(m, s.bias_correction1), denominator), s);
}

}  // namespace ebb::kernels
