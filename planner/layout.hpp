// Who holds what of the model's parameters, gradients and optimizer state, exactly as Megatron-LM lays it out: buffers,
// buckets, padding, and the shards of any rank in the optimizer's own order. The algorithms stand above their code:
// layout.cpp (buffers), layer_wise_layout.cpp (Muon's), shards.cpp (shards and their order), rank_coordinates.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/job.hpp"
#include "planner/parameters.hpp"

namespace ebb {

/// Where global rank `rank` stands, in the order "tp-cp-ep-dp-pp" or, with pipeline_inner, "tp-cp-ep-pp-dp".
struct RankCoordinates {
  std::int64_t tensor = 0;
  std::int64_t context = 0;
  std::int64_t data = 0;
  std::int64_t pipeline = 0;
  std::int64_t dense_shard = 0;   // rank inside the (intra-instance) dp_cp group
  std::int64_t expert = 0;        // expert-parallel rank
  std::int64_t expert_shard = 0;  // rank inside the (intra-instance) expert-data group
};
/// InputError when rank is outside [0, gpus).
RankCoordinates coordinates_of(const Job& job, std::int64_t rank);

/// A bucket covers buffer elements [start, end); end is padded.
struct Bucket {
  Numel start{0};
  Numel end{0};
  Numel unpadded{0};  // elements before the end padding
  Numel numel() const { return end - start; }
};

/// A parameter's place in its buffer.
struct ParameterRange {
  std::uint32_t parameter = 0;  // into StageLayout::parameters
  std::uint32_t bucket = 0;
  Numel start{0};
  Numel end{0};
  std::uint32_t owner = 0;  // Division::whole: the rank of the sharding group whose optimizer has it
};

/// How the ranks of a sharding group share the optimizer state of a buffer's parameters.
enum class Division : std::uint8_t {
  slices,  // the distributed optimizer: each bucket in equal ranges, one a rank
  none,    // without it: every rank has everything
  whole,   // layer-wise: each parameter is on one rank
};

struct BufferLayout {
  std::uint32_t model_chunk = 0;
  bool expert = false;
  bool quantized = false;  // the uint8 buffer of FP8 parameters
  Numel numel{0};          // padded: last bucket's end
  Numel unpadded{0};
  std::int64_t shards = 1;  // size of its sharding group
  Division division = Division::slices;
  bool holds_parameters = true;  // else it is of gradients alone, and parameters are tensors of their own
  std::vector<Bucket> buckets;
  std::vector<ParameterRange> ranges;  // in index-map order: reversed definition order
};

/// All buffers of one pipeline rank; the same for every data-parallel rank of it.
struct StageLayout {
  std::int64_t pipeline_rank = 0;
  std::vector<ModelChunk> chunks;
  std::vector<Parameter> parameters;  // all chunks, definition order
  std::vector<BufferLayout> buffers;  // model chunk by model chunk, in Megatron's order
  OptimizerSettings optimizer;
  bool gather_with_step = false;    // the first model chunk has an optimizer of its own
  Numel padded(bool expert) const;  // sum of buffer numel
  Numel padded() const { return padded(false) + padded(true); }
};
StageLayout stage_layout(const Job& job, std::int64_t pipeline_rank);

/// The part of one parameter that one rank's optimizer owns.
struct Shard {
  std::uint32_t parameter = 0;  // into StageLayout::parameters
  std::uint32_t buffer = 0;
  std::uint32_t bucket = 0;
  std::uint16_t optimizer = 0;  // chained optimizer: 0 dense, 1 expert, ... (shards.cpp)
  std::uint16_t group = 0;      // parameter group inside it: 0 decayed, 1 not decayed, ... (shards.cpp)
  Numel numel{0};
  Numel offset{0};           // first element inside the parameter
  Numel start{0};            // first element inside the buffer
  std::uint8_t moments = 2;  // state tensors beside the master: Adam 2, momentum alone 1
};

/// Shards of the rank with the given sharding-group ranks, in optimizer order: chained optimizer, group, then buffer,
/// bucket and index map, or definition order where nothing is sliced. Precondition: the ranks are inside their groups.
std::vector<Shard> rank_shards(const StageLayout& stage, std::int64_t dense_shard, std::int64_t expert_shard);

/// Sum of shard elements.
Numel owned(std::span<const Shard> shards);

}  // namespace ebb
