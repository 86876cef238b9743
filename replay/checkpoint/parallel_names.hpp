// What names of parameters say about parallelism. The planner ends the name of a part of a parameter in its place, e.g.
// "layers.0.fc1.weight [tp 0/2]" (tensor; etp: expert tensor; ep: expert; pp: pipeline, of shared embeddings alone), so
// a job of another parallel size asks a checkpoint for names that it has not.
#pragma once

#include <span>
#include <string>

#include "replay/checkpoint/checkpoint.hpp"

namespace ebb::replay::checkpoint {

/// Where `saved` has `wanted` in parts of another parallel size: "it is of tensor parallel size 2, the job of 1". ""
/// else.
std::string other_parallel_size(const std::string& wanted, std::span<const Parameter> saved);

}  // namespace ebb::replay::checkpoint
