#include "planner/describe_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"

namespace ebb {

namespace {

std::string place_in(const char* group, std::int64_t place, std::int64_t members) {
  return members > 1 ? fmt::format(" [{} {}/{}]", group, place, members) : std::string();
}

/// Replicas in a tensor-parallel group count as different parameters, too: each rank saves its own.
std::string unique_name(const RankModel& rank, const Parameter& parameter) {
  const Parallel& parallel = rank.job->parallel;
  const RankCoordinates at = coordinates_of(*rank.job, rank.rank);
  std::string name = parameter.name;
  if (parameter.expert) {
    name += place_in("etp", rank.rank % parallel.expert_tensor, parallel.expert_tensor);
    name += place_in("ep", at.expert, parallel.expert);
  } else {
    name += place_in("tp", at.tensor, parallel.tensor);
  }
  if (parameter.shared_embedding) name += place_in("pp", at.pipeline, parallel.pipeline);
  return name;
}

}  // namespace

void describe_parameters(const RankModel& rank, Plan& plan) {
  struct Entry {
    Numel at{0};
    std::uint32_t parameter = 0;
    bool quantized = false;
    bool expert = false;
  };
  const StageLayout& stage = *rank.stage;
  std::vector<Entry> entries;
  for (std::size_t b = 0; b < stage.buffers.size(); ++b) {
    const BufferLayout& buffer = stage.buffers[b];
    for (const ParameterRange& range : buffer.ranges)
      entries.push_back(
          {rank.padded.place(stage, b, range.bucket, range.start), range.parameter, buffer.quantized, buffer.expert});
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.at < b.at; });
  std::vector<std::uint32_t> index_of(stage.parameters.size(), 0);
  plan.parameters.clear();
  for (const Entry& entry : entries) {
    const Parameter& parameter = stage.parameters[entry.parameter];
    index_of[entry.parameter] = static_cast<std::uint32_t>(plan.parameters.size());
    std::vector<std::int64_t> shape{parameter.rows};
    if (parameter.columns > 0) shape.push_back(parameter.columns);
    plan.parameters.push_back({.name = unique_name(rank, parameter),
                               .shape = std::move(shape),
                               .at = entry.at,
                               .quantized = entry.quantized,
                               .expert = entry.expert});
  }
  for (Buffer& buffer : plan.buffers)
    for (std::uint32_t& parameter : buffer.parameters) parameter = index_of[parameter];
  EBB_ASSERT(plan.shards.size() == rank.shards.size());
  for (std::size_t i = 0; i < plan.shards.size(); ++i) plan.shards[i].parameter = index_of[rank.shards[i].parameter];
}

}  // namespace ebb
