// Device bytes of one rank, term by term, before any policy: what always stays (parameters, gradients, workspaces)
// and what forward and backward add. Policies add state on top (lower.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/job.hpp"
#include "models/plan.hpp"
#include "models/units.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// A named share of the device's memory, for tables and JSON.
struct Term {
  std::string name;
  Bytes bytes{0};
  Role role = Role::other;  // of the buffer in a plan
};

struct Footprint {
  std::vector<Term> resident;  // alive between steps, without optimizer state: parameters, gradients, workspaces, ...
  Bytes built{0};         // of them what building the model allocates: all that is there when a checkpoint is loaded
  Bytes lazy_columns{0};  // column-wise copies of FP8 weights that forward makes and a step's quantisation drops
  Bytes activations{0};   // highest saved activations of forward: all micro-batches in flight of this stage
  Bytes logits{0};        // on top at the highest moment: output layer and loss temporaries, or one layer's
                          // gradients (activations.hpp, StageActivations::turn)
  Bytes step_temporaries{0};  // fp32 copies of bf16 or fp16 gradients, alive from finalize to the next zero_grad
  Bytes resident_total() const {
    Bytes sum{0};
    for (const Term& term : resident) sum += term.bytes;
    return sum;
  }
};

/// What the last micro-batch leaves in each virtual stage that gets hidden states from another one: its input, which
/// the module still refers to, and the input's gradient. Source: Megatron-LM core/transformer/transformer_block.py
/// (set_input_tensor), core/pipeline_parallel/schedules.py (the input retains its gradient). Recorded on last stages
/// with 1, 2 and 3 virtual stages: two hidden states each, to 5 KiB; with 8, four
/// more in all, which nothing explains.
inline constexpr std::int64_t kLeftByStage = 2;
std::int64_t stages_with_input(const StageLayout& stage);

/// `owned` = elements this rank's optimizer owns. Highest allocation of a rank in forward and backward:
/// resident_total() + activations + logits + its resident state.
Footprint footprint_of(const Job& job, const StageLayout& stage, Numel owned);

}  // namespace ebb
