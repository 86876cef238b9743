// Device bytes of one rank, term by term, before any policy: what always stays (parameters, gradients, workspaces)
// and what forward and backward add. Policies add state on top (lower.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/job.hpp"
#include "models/units.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// A named share of the device's memory, for tables and JSON.
struct Term {
  std::string name;
  Bytes bytes{0};
};

struct Footprint {
  std::vector<Term> resident;  // alive between steps, without optimizer state: parameters, gradients, workspaces, ...
  Bytes activations{0};        // highest saved activations of forward: all micro-batches in flight of this stage
  Bytes logits{0};             // on top at the turn from forward to backward: output layer and loss temporaries, or,
                               // where larger or without an output layer, one layer's gradients (turn_temporaries)
  Bytes step_temporaries{0};   // e.g. fp32 copies of bf16 gradients, alive from finalize to the next zero_grad
  Bytes resident_total() const {
    Bytes sum{0};
    for (const Term& term : resident) sum += term.bytes;
    return sum;
  }
};

/// `owned` = elements this rank's optimizer owns. Highest allocation of a rank in forward and backward:
/// resident_total() + activations + logits + its resident state. Balanced experts, no dropout.
Footprint footprint_of(const Job& job, const StageLayout& stage, Numel owned);

}  // namespace ebb
