// Activations of one pipeline rank: how many micro-batches of its layers' saved tensors are alive at the peak, and what
// the turn from forward to backward needs on top. Not here: parameters, gradients and
// workspaces (footprint.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "models/job.hpp"
#include "models/units.hpp"
#include "planner/layer_activations.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// result[c]: micro-batches of virtual stage c whose activations are alive at the peak of pipeline rank
/// `pipeline_rank`. One-forward-one-backward: PP - rank. Interleaved: the first
/// 2(PP - rank - 1) + (VPP - 1)PP + 1 virtual micro-batches, which visit the stages in groups of PP.
/// Both are capped by the micro-batches of the step. Source: Megatron-LM core/pipeline_parallel/schedules.py,
/// get_pp_rank_microbatches, at d98e8a64dd.
std::vector<std::int64_t> micro_batches_in_flight(const Job& job, std::int64_t pipeline_rank);

/// Everything forward has saved on this rank when the most micro-batches are in flight.
Bytes saved_activations(const Job& job, const StageLayout& stage);

/// Most that is alive on top of the saved activations at the turn from forward to backward: the loss on the stage
/// with the output layer, the block of layers that full recomputation holds again, or the gradients of one layer;
/// whichever is largest, for they follow one another.
Bytes turn_temporaries(const Job& job, const StageLayout& stage);

/// Rows of the embedding and output matrices before they are split over TP.
/// Source: Megatron-LM core/tokenizers/utils/build_tokenizer.py:133.
std::int64_t padded_vocabulary(const Job& job);

}  // namespace ebb
