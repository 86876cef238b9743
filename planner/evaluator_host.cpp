// What a candidate needs of a host's memory (host_demand.hpp), and whether that is there.
#include "planner/evaluator.hpp"

namespace ebb {

const HostDemand& Evaluator::host(const Candidate& candidate) {
  Candidate key;  // chunk sizes and slots do not change what lies on the host, but for what tidal keeps
  key.policy = candidate.policy;
  key.fraction = candidate.fraction;
  if (candidate.policy == Policy::tidal) key = candidate;
  const auto known = host_.find(key);
  if (known != host_.end()) return known->second;
  return host_[key] = host_demand(*job_, hosts_, ranks_.ranks(), candidate, job_->checkpoint.start);
}

Bytes Evaluator::socket_memory() const {
  return Bytes{job_->cluster.host.memory.value.value / job_->cluster.host.sockets};
}

bool Evaluator::fits_host(const Candidate& candidate) {
  const HostDemand& demand = host(candidate);
  return demand.per_host <= host_budget_of(*job_) && demand.pinned_per_socket <= socket_memory();
}

void Evaluator::add_host(Answer& answer) {
  const HostDemand& demand = host(answer.candidate);
  answer.host_pinned_per_rank = demand.pinned_per_rank;
  answer.host_pinned_per_host = demand.pinned_per_host;
  answer.host_pinned_per_socket = demand.pinned_per_socket;
  answer.socket_memory = socket_memory();
  answer.host_pageable_per_host = demand.per_host - demand.pinned_per_host;
  answer.host_decides = demand.decides;
  answer.fits_host = fits_host(answer.candidate);
}

}  // namespace ebb
