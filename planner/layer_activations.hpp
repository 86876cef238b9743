// What one transformer layer saves for backward, for one micro-batch on one rank. How many of them are alive at once
// is the stage's matter (activations.hpp).
#pragma once

#include <string_view>

#include "models/job.hpp"
#include "models/units.hpp"

namespace ebb {

/// Bytes that one transformer layer saves for backward, for one micro-batch, on one rank.
struct SavedActivations {
  Bytes residual{0};      // the residual stream: inputs, outputs and statistics of both norms, masks of hidden dropout
  Bytes attention{0};     // queries, keys, values, context, rotary tables, log-sum-exp or scores with their masks
  Bytes feed_forward{0};  // dense or shared experts
  Bytes experts{0};       // router and routed experts
  Bytes total() const { return residual + attention + feed_forward + experts; }
};

/// From the layer's tape. `moe`: an MoE layer rather than a dense one. Selective recomputation is taken off; full
/// recomputation is not (it is a matter of the whole stage).
SavedActivations saved_activations_per_layer(const Job& job, bool moe);

/// Whether selective recomputation covers `module` (Megatron's --recompute-modules; core_attn when none is named).
bool recomputes(const Recompute& recompute, std::string_view module);

/// Bytes of one hidden-state tensor of one micro-batch: what pipeline stages hand on.
Bytes hidden_state_bytes(const Job& job);

/// Tokens of one micro-batch on one rank.
std::int64_t rank_tokens(const Job& job);

}  // namespace ebb
