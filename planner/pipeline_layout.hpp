// How a model's layers are spread over pipeline ranks and virtual stages: evenly, with other numbers for the first and
// last rank, or by Megatron's layout string (--pipeline-model-parallel-layout), for example "Et*3|(tt|)*29m|L".
#pragma once

#include <string_view>
#include <vector>

#include "planner/parameters.hpp"

namespace ebb {

/// The virtual stages of a layout string in pipeline order; stage s belongs to pipeline rank s % pipeline and model
/// chunk s / pipeline. InputError at `place` for anything that Megatron refuses.
std::vector<ModelChunk> parse_pipeline_layout(std::string_view text, const Place& place);

/// Chunks of one pipeline rank without a layout string. InputError where layers do not divide.
std::vector<ModelChunk> split_layers(const Job& job, std::int64_t pipeline_rank);

}  // namespace ebb
