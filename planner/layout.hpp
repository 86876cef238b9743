// The distributed optimizer's layout, exactly as Megatron-LM builds it: buffers, buckets, padding, and the shards
// of any rank in the optimizer's own order. The algorithm stands above its code in layout.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/job.hpp"
#include "planner/parameters.hpp"

namespace ebb {

/// Where global rank `rank` stands. Order "tp-cp-ep-dp-pp" (megatron.md 1.1).
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
};

struct BufferLayout {
  std::uint32_t model_chunk = 0;
  bool expert = false;
  bool quantized = false;  // the uint8 buffer of FP8 parameters
  Numel numel{0};          // padded: last bucket's end
  Numel unpadded{0};
  std::int64_t shards = 1;  // size of its sharding group
  std::vector<Bucket> buckets;
  std::vector<ParameterRange> ranges;  // in index-map order: reversed definition order
};

/// All buffers of one pipeline rank; the same for every data-parallel rank of it.
struct StageLayout {
  std::int64_t pipeline_rank = 0;
  std::vector<ModelChunk> chunks;
  std::vector<Parameter> parameters;  // all chunks, definition order
  std::vector<BufferLayout> buffers;  // model chunk by model chunk, in Megatron's order
  Numel padded(bool expert) const;    // sum of buffer numel
  Numel padded() const { return padded(false) + padded(true); }
};
StageLayout stage_layout(const Job& job, std::int64_t pipeline_rank);

/// The part of one parameter that one rank's optimizer owns.
struct Shard {
  std::uint32_t parameter = 0;  // into StageLayout::parameters
  std::uint32_t buffer = 0;
  std::uint32_t bucket = 0;
  std::uint16_t optimizer = 0;  // chained optimizer: 0 dense, 1 expert
  std::uint16_t group = 0;      // parameter group inside it: 0 decayed, 1 not decayed
  Numel numel{0};
  Numel offset{0};  // first element inside the parameter
};

/// Shards of the rank with the given sharding-group ranks, in optimizer order: chained optimizer, group, buffer,
/// bucket, index map. Precondition: the ranks are inside their groups.
std::vector<Shard> rank_shards(const StageLayout& stage, std::int64_t dense_shard, std::int64_t expert_shard);

/// Sum of shard elements.
Numel owned(std::span<const Shard> shards);

}  // namespace ebb
