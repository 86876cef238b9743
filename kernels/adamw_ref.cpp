// The definition of AdamW's bits: each operation rounds to fp32 once, in the order written here (this file is compiled
// without contraction). The order is that of Transformer Engine's FusedAdam, AdamW mode:
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + ((1 - beta2) g) g
//   p = p - lr ((m / bc1) / (sqrt(v / bc2) + eps) + wd p)
// Moments held in bf16 are rounded when they are stored; the weight's step uses them before that.
#include <cmath>
#include <cstdint>

#include "kernels/access_ref.hpp"
#include "kernels/adamw.hpp"

namespace ebb::kernels {
namespace {

// One element; the addresses are its own.
void update(const AdamwArrays& types, const AdamwRun& at, const AdamwStep& step) {
  char* const exp_avg = static_cast<char*>(types.exp_avg) + at.exp_avg;
  char* const exp_avg_sq = static_cast<char*>(types.exp_avg_sq) + at.exp_avg_sq;
  char* const master = static_cast<char*>(types.master) + at.master;
  const float p = read_value(Type::fp32, master);
  const float g = read_value(types.grad_type, static_cast<const char*>(types.grad) + at.grad);
  const float m = step.beta1 * read_value(types.exp_avg_type, exp_avg) + step.one_minus_beta1 * g;
  const float v = step.beta2 * read_value(types.exp_avg_sq_type, exp_avg_sq) + step.one_minus_beta2 * g * g;
  const float denominator = std::sqrt(v / step.bias_correction2) + step.epsilon;
  const float direction = (m / step.bias_correction1) / denominator + step.weight_decay * p;
  const float next = p - step.learning_rate * direction;
  write_value(types.exp_avg_type, exp_avg, canonical(m));
  write_value(types.exp_avg_sq_type, exp_avg_sq, canonical(v));
  write_value(Type::fp32, master, canonical(next));
  if (types.param == nullptr) return;
  const float stored = types.param_type == Type::fp8_e4m3 ? next * types.param_scale : next;
  write_value(types.param_type, static_cast<char*>(types.param) + at.param, stored);
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

std::int64_t adamw_bytes(const AdamwArrays& arrays) {
  return bytes_of(arrays.grad_type) + 2 * bytes_of(arrays.exp_avg_type) + 2 * bytes_of(arrays.exp_avg_sq_type) + 8 +
         (arrays.param != nullptr ? bytes_of(arrays.param_type) : 0);
}

void adamw_ref(const AdamwArrays& arrays, std::span<const AdamwRun> runs, const AdamwStep& step) {
  for (const AdamwRun& run : runs) {
    AdamwRun at = run;
    for (std::int64_t i = 0; i < run.numel; ++i) {
      update(arrays, at, step);
      at.grad += bytes_of(arrays.grad_type);
      at.exp_avg += bytes_of(arrays.exp_avg_type);
      at.exp_avg_sq += bytes_of(arrays.exp_avg_sq_type);
      at.master += 4;
      at.param += bytes_of(arrays.param_type);
    }
  }
}

}  // namespace ebb::kernels
