// The definition of AdamW's bits: each operation rounds to fp32 once, in the order written here (this file is compiled
// without contraction). The order is that of Transformer Engine's FusedAdam, AdamW mode:
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + ((1 - beta2) g) g
//   p = p - lr ((m / bc1) / (sqrt(v / bc2) + eps) + wd p)
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/adamw.hpp"

namespace ebb::kernels {
namespace {

// GPUs have one NaN; CPUs carry payloads and signs along.
constexpr std::uint32_t kNan = 0x7fffffff;
constexpr std::uint16_t kNanBf16 = 0x7fff;

float canonical(float x) { return std::isnan(x) ? std::bit_cast<float>(kNan) : x; }

// Drops the low 16 bits, rounding to nearest, ties to the even neighbour; overflow becomes infinity by the carry.
std::uint16_t to_bf16(float x) {
  if (std::isnan(x)) return kNanBf16;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t round = 0x7fff + ((bits >> 16) & 1);
  return static_cast<std::uint16_t>((bits + round) >> 16);
}

}  // namespace

AdamwStep adamw_step(const AdamwOptions& options, std::int64_t step) {
  const auto correction = [step](float beta) {
    return static_cast<float>(1 - std::pow(static_cast<double>(beta), static_cast<double>(step)));
  };
  return {.learning_rate = options.learning_rate,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .one_minus_beta1 = 1 - options.beta1,
          .one_minus_beta2 = 1 - options.beta2,
          .epsilon = options.epsilon,
          .weight_decay = options.weight_decay,
          .bias_correction1 = correction(options.beta1),
          .bias_correction2 = correction(options.beta2)};
}

void adamw_ref(const AdamwArrays& arrays, const AdamwStep& step) {
  for (std::int64_t i = 0; i < arrays.numel; ++i) {
    const float p = arrays.param[i];
    const float g = arrays.grad[i];
    const float m = step.beta1 * arrays.exp_avg[i] + step.one_minus_beta1 * g;
    const float v = step.beta2 * arrays.exp_avg_sq[i] + step.one_minus_beta2 * g * g;
    const float denominator = std::sqrt(v / step.bias_correction2) + step.epsilon;
    const float update = (m / step.bias_correction1) / denominator + step.weight_decay * p;
    const float next = p - step.learning_rate * update;
    arrays.exp_avg[i] = canonical(m);
    arrays.exp_avg_sq[i] = canonical(v);
    arrays.param[i] = canonical(next);
    if (arrays.param_bf16 != nullptr) arrays.param_bf16[i] = to_bf16(next);
  }
}

}  // namespace ebb::kernels
