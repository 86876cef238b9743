// Activations of one pipeline rank: what forward saves for backward, layer by layer, how many micro-batches of it are
// alive at the peak, and what the turn from forward to backward needs on top. Not here: parameters, gradients and
// workspaces (footprint.hpp).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/job.hpp"
#include "models/units.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// Bytes that one transformer layer saves for backward, for one micro-batch, on one rank.
struct SavedActivations {
  Bytes norms{0};      // inputs (the residual stream), outputs and statistics of both norms
  Bytes attention{0};  // queries, keys, values, context, rotary tables, log-sum-exp
  Bytes scores{0};     // softmax of unfused attention
  Bytes mlp{0};        // dense feed-forward or shared experts
  Bytes experts{0};    // router and routed experts, at balanced load
  Bytes total() const { return norms + attention + scores + mlp + experts; }
};

/// The table of terms stands in activations.cpp. `moe`: an MoE layer rather than a dense one. Selective recomputation
/// is taken off; full recomputation is not (it is a matter of the whole stage).
SavedActivations saved_activations_per_layer(const Job& job, bool moe);

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

/// Whether selective recomputation covers `module` (Megatron's --recompute-modules; core_attn when none is named).
bool recomputes(const Recompute& recompute, std::string_view module);

/// Bytes of one hidden-state tensor of one micro-batch: what pipeline stages hand on.
Bytes hidden_state_bytes(const Job& job);

/// Rows of the embedding and output matrices before they are split over TP.
/// Source: Megatron-LM core/tokenizers/utils/build_tokenizer.py:133.
std::int64_t padded_vocabulary(const Job& job);

}  // namespace ebb
