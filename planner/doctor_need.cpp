#include "planner/doctor_need.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "planner/constraints.hpp"
#include "planner/life_host.hpp"
#include "planner/ranks.hpp"
#include "planner/search.hpp"

namespace ebb {

namespace {

/// The job's own candidate where it names all of it, else the recommended one.
std::optional<Answer> answer_for(const Job& job) {
  const SearchResult result = search(job, {.cures = false});
  if (!result.recommended) return std::nullopt;
  return result.candidates[*result.recommended];
}

/// All ranks together; of several optimizer instances, which hold the same, one writes.
Bytes checkpoint_bytes(const Job& job) {
  const RankSet ranks(job);
  Bytes sum{0};
  for (std::int64_t rank = 0; rank < job.parallel.gpus; ++rank)
    sum += stored_bytes(ranks.ranks()[ranks.model_of(rank)], rank, job.checkpoint.save_optimizer);
  return {sum.value / job.parallel.optimizer_instances};
}

}  // namespace

std::optional<HostNeed> host_need(const Job& job) {
  const std::optional<Answer> answer = answer_for(job);
  if (!answer) return std::nullopt;
  HostNeed need;
  need.job = job.name;
  need.policy = name_of(answer->candidate.policy);
  for (const std::string& flag : answer->flags) need.policy += " " + flag;
  need.ranks = std::min(job.cluster.gpus_per_host, job.parallel.gpus);
  need.hosts = (job.parallel.gpus + need.ranks - 1) / need.ranks;
  need.pinned = answer->host_pinned_per_host;
  need.pageable = answer->host_pageable_per_host;
  need.checkpoint = checkpoint_bytes(job);
  need.gpu = job.cluster.gpu.name;
  need.h2d = job.cluster.host_link.h2d.value;
  return need;
}

}  // namespace ebb
