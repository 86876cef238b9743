// AdamW over one contiguous run of elements: the GPU launcher and its CPU reference, which give the same bits.
//
// Why our own: what replay executes must be checkable bit for bit, whatever the chunks, and must run at the speed of
// device memory. Not here: optimizer state, chunking, streams; the caller owns every buffer and the order of calls.
// CUDA-free header: addresses are raw pointers, bf16 is its 16 bits, the stream is an opaque pointer.
#pragma once

#include <cstdint>

namespace ebb::kernels {

/// What the user sets; weight decay is decoupled (AdamW), not added to the gradient.
struct AdamwOptions {
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.01F;
};

/// Constants of one step, as both implementations use them.
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

/// One run of `numel` elements: 28 bytes move per element, 30 with param_bf16. The arrays do not overlap. Any address
/// that suits the element type will do; the kernel is fastest when all fp32 arrays have the same address modulo 16
/// (and param_bf16 that address halved, modulo 8), as equal offsets into aligned arrays do.
struct AdamwArrays {
  float* param;                         // fp32 master weight, updated
  const float* grad;                    // fp32
  float* exp_avg;                       // updated
  float* exp_avg_sq;                    // updated
  std::uint16_t* param_bf16 = nullptr;  // optional: param rounded to bf16, nearest even, written in the same pass
  std::int64_t numel = 0;
};

/// Enqueues the update on `stream` (a cudaStream_t; null is the default stream). The arrays are device memory.
/// Returns the launch's cudaError_t, 0 for success. numel 0 launches nothing.
[[nodiscard]] int launch_adamw(const AdamwArrays& arrays, const AdamwStep& step, void* stream);

/// The same update on host memory, element by element. NaNs come out as the GPU's (0x7fffffff, in bf16 0x7fff).
void adamw_ref(const AdamwArrays& arrays, const AdamwStep& step);

}  // namespace ebb::kernels
