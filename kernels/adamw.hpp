// AdamW over runs of elements: the GPU launchers and their CPU reference, which give the same bits.
//
// Why our own: what replay executes must be checkable bit for bit, whatever the chunks, and must run at the speed of
// device memory. Not here: optimizer state, chunking, streams; the caller owns every buffer and the order of calls.
// CUDA-free header: addresses are raw pointers, the stream is an opaque pointer.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/types.hpp"

namespace ebb::kernels {

/// What the user sets; weight decay is decoupled (AdamW), not added to the gradient.
struct AdamwOptions {
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.01F;
};

/// Constants of one step, as all implementations use them.
struct AdamwStep {
  float learning_rate;
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float epsilon;
  float weight_decay;
  float bias_correction1;
  float bias_correction2;
};

/// `step` counts from 1. The bias corrections are (float)(1 - pow(beta, step)) with the power in double, as in
/// Transformer Engine's FusedAdam (transformer_engine/common/multi_tensor/adam.cu).
AdamwStep adamw_step(const AdamwOptions& options, std::int64_t step);

/// Where the arrays begin and what they hold. Gradients and moments are fp32 or bf16; the master weight is fp32 and is
/// the parameter itself where `param` is null. Otherwise the updated master is also written to `param`, rounded to
/// `param_type` (not fp32); fp8 holds master * param_scale, saturated.
struct AdamwArrays {
  const void* grad = nullptr;
  void* exp_avg = nullptr;     // updated
  void* exp_avg_sq = nullptr;  // updated
  void* master = nullptr;      // updated
  void* param = nullptr;       // written
  Type grad_type = Type::fp32;
  Type exp_avg_type = Type::fp32;
  Type exp_avg_sq_type = Type::fp32;
  Type param_type = Type::bf16;
  float param_scale = 1;
};

/// Elements of one run; bytes after each array's base (runs.hpp). `param` counts only where the arrays have one.
struct AdamwRun {
  std::int64_t grad = 0;
  std::int64_t exp_avg = 0;
  std::int64_t exp_avg_sq = 0;
  std::int64_t master = 0;
  std::int64_t param = 0;
  std::int64_t numel = 0;
};

/// Bytes one element moves: 28 with all in fp32 and no param.
std::int64_t adamw_bytes(const AdamwArrays& arrays);

/// Enqueues the update on `stream` (a cudaStream_t; null is the default stream). The arrays are device memory.
/// Returns the launch's cudaError_t, 0 for success; cudaErrorInvalidValue for types or sizes it does not know.
[[nodiscard]] int launch_adamw(const AdamwArrays& arrays, std::span<const AdamwRun> runs, const AdamwStep& step,
                               void* stream);

/// The same update, the same bits, as nine elementwise passes with one scratch tensor in between: stands in for an
/// optimizer that is not fused. Moments must be fp32. `scratch` is fp32, 4 bytes an element: runs lie there one behind
/// the other, in order. Moves kAdamwForeachBytes an element (with fp32 gradients), and a param costs a pass more.
inline constexpr std::int64_t kAdamwForeachBytes = 88;
[[nodiscard]] int launch_adamw_foreach(const AdamwArrays& arrays, std::span<const AdamwRun> runs, const AdamwStep& step,
                                       void* scratch, void* stream);

/// The same update on host memory, element by element. NaNs come out as the GPU's (types.hpp).
void adamw_ref(const AdamwArrays& arrays, std::span<const AdamwRun> runs, const AdamwStep& step);

}  // namespace ebb::kernels
