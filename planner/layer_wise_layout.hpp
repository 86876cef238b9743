// Layer-wise distribution of an optimizer that needs whole matrices (Muon): which rank has which parameter. Internal to
// layout.cpp and shards.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/layout.hpp"

namespace ebb {

/// Muon orthogonalizes what it steps; embeddings, the output layer and vectors are left to Adam.
bool is_orthogonalized(const OptimizerSettings& optimizer, const Parameter& parameter);

/// Lays `members` (of `parameters`, in reversed definition order) out in `buffer` so that each lies in one rank's part
/// of its bucket: with the distributed optimizer beside it for what Adam steps.
void place_layer_wise(const std::vector<Parameter>& parameters, std::span<const std::uint32_t> members,
                      std::optional<Numel> limit, std::int64_t alignment, BufferLayout& buffer);

/// Without that layout (--no-use-layer-wise-param-layout): deals all parameters of the stage out to the ranks of their
/// groups by size, there and back: sets ParameterRange::owner.
void deal_parameters(StageLayout& stage);

}  // namespace ebb
