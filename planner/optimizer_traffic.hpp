// What Adam and the cast to model parameters cost in bytes, and what optimizer state occupies on the device.
// Source: Megatron-LM main d98e8a64dd and TransformerEngine main d0067d0da6 (common/multi_tensor/adam.cu).
#pragma once

#include <cstdint>
#include <span>

#include "models/job.hpp"
#include "models/plan.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// Bytes of one gradient element that norm, clip and Adam read: 4 where gradients are fp32 or the standard optimizer
/// has copied them to fp32; a precision-aware one reads them as they are (footprint.cpp knows the same rule).
inline std::int64_t grad_bytes_per_element(const Precision& precision) {
  const bool copied = precision.state_bytes() == 12;
  return copied ? 4 : size_of(precision.grads);
}

/// HBM bytes of Adam over one element: reads the gradient and every state, writes every state. 28 for fp32.
/// `writes_params`: it also writes the model parameter in the same pass (30 for fp32 state and bf16 parameters).
inline std::int64_t adam_bytes_per_element(const Precision& precision, bool writes_params) {
  return grad_bytes_per_element(precision) + 2 * precision.state_bytes() +
         (writes_params ? size_of(precision.params) : 0);
}

/// HBM bytes of the cast from master weight to model parameter: 6 for fp32 to bf16.
inline std::int64_t cast_bytes_per_element(const Precision& precision) {
  return size_of(precision.master) + size_of(precision.params);
}

/// Stored bytes of one element of `states` (a StateBits set out of kAllState).
std::int64_t state_bytes_per_element(const Precision& precision, std::uint8_t states);

/// Bytes of all state of `shards`, without what an allocator rounds up.
Bytes stored_state(const Precision& precision, std::span<const Shard> shards);

/// HBM bytes of stepping `shards`: Adam's, less what momentum alone does not read and write.
Bytes step_bytes(const Precision& precision, std::span<const Shard> shards, bool writes_params);

/// FLOPs of orthogonalizing one matrix by five Newton-Schulz iterations: with X of m x n, m the smaller,
///   A = X X^T, B = b A + c A^2, X = a X + B X        2 m^2 n + 2 m^3 + 2 m^2 n each
/// Source: Megatron-LM core/optimizer/emerging_optimizers (muon_num_ns_steps 5); the query, key and value parts of one
/// matrix count as one.
Flops newton_schulz_flops(std::int64_t rows, std::int64_t columns);

/// Device bytes of `states` of all `shards`, one tensor a shard and state, as torch's caching allocator counts them.
Bytes allocated_state(const Precision& precision, std::span<const Shard> shards, std::uint8_t states);

/// Device bytes of one fresh tensor of `bytes_per_element` a shard.
Bytes allocated_tensors(std::span<const Shard> shards, std::int64_t bytes_per_element);

/// Device bytes that Adam allocates while it steps `shards` together: the unfused kernel keeps the square roots, 4
/// bytes an element (measured on one H200, torch 2.11: 4.00 bytes an element above the state at 6.3e9 elements); the
/// fused one unscales moments stored as fp16 or fp8, or of mixed types, to fp32 (4 bytes an element and state).
Bytes adam_temporaries(const Job& job, AdamKernel kernel, std::span<const Shard> shards);

/// How many fp32 tensors a shard that is.
int adam_scratch_tensors(const Job& job, AdamKernel kernel);

/// Launches of one Adam call: the unfused one runs nine passes (decay, two moments, root, correction, epsilon, step).
constexpr std::uint32_t adam_launches(AdamKernel kernel) { return kernel == AdamKernel::fused ? 1 : 9; }
constexpr Work adam_work(AdamKernel kernel) { return kernel == AdamKernel::fused ? Work::adam : Work::adam_foreach; }

}  // namespace ebb
