// The calls of quantize_master_weights that a step makes, and what one rank owns of each. Whole: one call for each
// chained optimizer. In chunks (pull request 6544, second pass): parameters in buffer order, owned or not, up to N
// elements of the whole model, across buffers, so that all ranks of a sharding group make the same calls.
// Internal to lower_quantize.cpp, slot_quantizer.cpp and allocation_trace_state.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/lowerings.hpp"

namespace ebb {

struct QuantizeCall {
  bool expert = false;
  std::uint32_t chunk = kNoChunk;
  std::vector<std::uint32_t> parameters;  // into StageLayout::parameters, owned or not
  std::vector<Part> runs;                 // consecutive shards that the rank owns of them
  std::uint32_t tensors() const;
};

/// Empty where the recipe does not quantise after the step (requantizes()). Chunks count on from `first_chunk`.
/// O(parameters). A parameter larger than `limit` is a call of its own.
std::vector<QuantizeCall> quantize_calls(const RankModel& rank, std::optional<Numel> limit, std::uint32_t first_chunk);

/// Where the largest values of a call's parameters are collected.
struct LargestBuffer {
  BufferId buffer;
  OpId ready;  // allocated, and zeroed where a replay collects into it
};
LargestBuffer allocate_largest(PlanBuilder& plan, const RankModel& rank, Phase phase, const QuantizeCall& call);
/// Their maximum over the sharding group; `after` where that is this rank alone.
OpId reduce_largest(PlanBuilder& plan, const RankModel& rank, Phase phase, const QuantizeCall& call, BufferId largest,
                    OpId after);

}  // namespace ebb
