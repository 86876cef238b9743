// What loading and saving a checkpoint allocates on the device beside the optimizer state itself, tensor by tensor.
//
// Why apart: a job whose steps fit can die in its first resume or its first save. Transformer Engine's optimizer makes
// copies in both: its state dictionary un-scales what is not stored as fp32, and its loader builds every state anew
// beside the one that is there. A resume runs the loader twice: once to have tensors to read into, once with what was
// read. Sources: Megatron-LM main, core/optimizer/distrib_optimizer.py (load_state_dict, sharded_state_dict,
// get_parameter_state_dp_zero) and Transformer Engine's fused_adam.py (state_dict, load_state_dict).
// Reported: NVIDIA/Megatron-LM issue 1746 (19,128 MiB for 2.5e9 owned elements: both moments, once more) and pull
// request 7288 (22.5 GiB less in a load without the second copy of 22.5 GiB of state).
//
// Not here: the merge of gated feed-forward weights, which falls back to the host when the device is full; what lies on
// the host (life_host.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "models/policy.hpp"
#include "planner/lower.hpp"

namespace ebb {

/// Bytes per owned element, one entry a tensor of the shard's size.
using TensorSizes = std::vector<std::int64_t>;

/// Whether the optimizer is Transformer Engine's, which makes the copies below. The local implementation runs without.
bool has_fused_state_dict(const Job& job);

/// The tensors that the first pass of a load makes, which the loader then copies.
TensorSizes scaffold_tensors(const Job& job);
/// What the second pass holds beside old or new state: the state dictionary's copies, or the new tensors.
TensorSizes reload_tensors(const Job& job);
/// fp32 copies of states that are stored otherwise, as the optimizer's state dictionary makes them.
TensorSizes unscaled_tensors(const Job& job);
/// The same where Megatron-LM hands them to the checkpoint: only where Transformer Engine holds the masters, too.
TensorSizes handed_over_tensors(const Job& job);

/// `fully_reshardable`: elements of one bucket that every rank gathers on the device at a time, fp32 (the largest
/// bucket), in pieces of one rank's share. {0, 0} for another way of saving.
struct BucketGather {
  Numel piece{0};
  std::int64_t pieces = 0;
};
BucketGather save_gather(const Job& job, const StageLayout& stage);

/// Allocated bytes at the peak of a load or a save, from sizes alone: what a search compares with the budget before it
/// replays anything. A load comes before the first step, so that nothing of a step is there (workspaces, the table of
/// positions, what a micro-batch leaves); a save has all of that beside it.
Bytes load_peak(const RankModel& rank, const Candidate& candidate, Start start);
Bytes save_peak(const RankModel& rank, const Candidate& candidate);

/// Whether a save takes device memory at all under this policy.
bool save_allocates(const Job& job, const Candidate& candidate);

}  // namespace ebb
