// How much optimizer state a plan has on the device at once, and how much its policy may have there. Peaks alone do not
// show this: activations may hide state, or the other way round.
//
// State: buffers of role state in device memory. What a recipe keeps beside it (parameters, gradients, scales,
// column-wise copies, staging windows) is no state.
//   chunked    max(N, largest shard) elements of moments and masters
//   windowed   all masters that move, in one window; of the moments two windows of a chunk, for the dense and for the
//              expert optimizer; and what `fraction` leaves on the device
//   pipelined  slots of exactly N elements
// In plans that are not packed every tensor begins at a multiple of 256 bytes; allocators hand out multiples of 512.
// Sources: Megatron-LM pull request 6544 (chunked), dev #6244 (windowed).
#pragma once

#include <optional>

#include "models/plan.hpp"

namespace ebb::replay {

/// Highest bytes alive on the device, in the order of the plan's ops, of buffers that hold some of `states`.
Bytes state_peak(const Plan& plan, std::uint8_t states = kAllState);

/// The same at the moment when the plan has most on the device of all kinds; of several such moments the least.
Bytes state_at_peak(const Plan& plan, std::uint8_t states = kAllState);

/// By the plan's candidate, shards and types alone; none for policies that bring back everything at once.
std::optional<Bytes> state_bound(const Plan& plan);

}  // namespace ebb::replay
