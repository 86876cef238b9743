// What Adam and the cast to model parameters cost in bytes, and what optimizer state occupies on the device, for every
// recipe of state types.
// Source: Megatron-LM main d98e8a64dd and TransformerEngine main d0067d0da6 (common/multi_tensor/adam.cu,
// pytorch/optimizers/fused_adam.py).
#pragma once

#include <cstdint>
#include <span>

#include "models/job.hpp"
#include "models/plan.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// The types in which `policy` holds and steps state: the job's, but for cpu-adam, whose optimizer keeps fp32 copies of
/// its own whatever Megatron was told (hybrid_optimizer.py, param_update_in_fp32).
Precision precision_of(const Job& job, Policy policy);

/// A step makes fp32 copies of the owned gradients: where Megatron holds the masters and gradients are not fp32
/// already. Transformer Engine's optimizer, where it holds them, reads gradients as they are (decoupled_grad).
inline bool copies_gradients(const Precision& precision) {
  return !precision.optimizer_holds_masters() && precision.grads != Dtype::fp32;
}

/// Bytes of one gradient element that norm, clip and Adam read.
inline std::int64_t grad_bytes_per_element(const Precision& precision) {
  return copies_gradients(precision) ? 4 : size_of(precision.grads);
}

/// Adam itself writes the model parameters, and no cast follows: where it holds the masters, and where parameters are
/// fp32 and so their own masters.
inline bool adam_writes_params(const Precision& precision) {
  return precision.optimizer_holds_masters() || precision.master_bytes() == 0;
}

/// HBM bytes of Adam over one element: reads the gradient and every state, writes every state, and the parameter where
/// it writes it. fp32 state: 28 where a cast follows, 30 where not; bf16 moments 20 and 22; int16 remainders, whose
/// upper halves are the parameters, 28, with bf16 moments 20; gathered FP8 weights with delayed scaling 29 (of the
/// parameters that stay bf16 a byte less than true). Moments that are stored scaled, or of mixed types, are converted
/// to fp32 and back by passes of their own.
/// `one_pass`: Ebb's own kernel, which writes the parameter in any case.
std::int64_t adam_bytes_per_element(const Precision& precision, bool one_pass);

/// HBM bytes of the cast from master weight to model parameter: 6 for fp32 to bf16.
inline std::int64_t cast_bytes_per_element(const Precision& precision) {
  return precision.master_bytes() + size_of(precision.params);
}

/// The states that exist: an fp32 parameter has no master weight.
inline std::uint8_t held_states(const Precision& precision) {
  return static_cast<std::uint8_t>(precision.master_bytes() == 0 ? kMoments : kAllState);
}

/// Stored bytes of one element of `states` (a StateBits set out of kAllState).
std::int64_t state_bytes_per_element(const Precision& precision, std::uint8_t states);

/// Device bytes of `states` of all `shards`, one tensor a shard and state, as torch's caching allocator counts them.
Bytes allocated_state(const Precision& precision, std::span<const Shard> shards, std::uint8_t states);

/// Device bytes of one fresh tensor of `bytes_per_element` a shard.
Bytes allocated_tensors(std::span<const Shard> shards, std::int64_t bytes_per_element);

/// Single fp32 numbers beside one shard's state of this type, each a tensor of its own that no policy moves: a scale
/// for every type but fp32, and of an FP8 tensor its inverse and its quantizer's scale and largest value.
constexpr int scale_tensors(Dtype state) { return state == Dtype::fp32 ? 0 : state == Dtype::fp8 ? 4 : 1; }
/// ... beside all states of one shard.
int scale_tensors(const Precision& precision);
/// Device bytes of them for all `shards`.
Bytes allocated_scales(const Precision& precision, std::span<const Shard> shards);

/// Device bytes that Adam allocates while it steps `shards` together: the unfused kernel keeps the square roots, 4
/// bytes an element (measured on one H200, torch 2.11: 4.00 bytes an element above the state at 6.3e9 elements); the
/// fused one unscales states stored as fp16 or fp8, or moments of mixed types, to fp32 (4 bytes an element and state).
Bytes adam_temporaries(const Precision& precision, AdamKernel kernel, std::span<const Shard> shards);

/// How many fp32 tensors a shard that is.
int adam_scratch_tensors(const Precision& precision, AdamKernel kernel);

/// Launches of one Adam call: the unfused one runs nine passes (decay, two moments, root, correction, epsilon, step).
constexpr std::uint32_t adam_launches(AdamKernel kernel) { return kernel == AdamKernel::fused ? 1 : 9; }
constexpr Work adam_work(AdamKernel kernel) { return kernel == AdamKernel::fused ? Work::adam : Work::adam_foreach; }

}  // namespace ebb
