// What a candidate needs of a host's memory, and whether that is there.
//
// Pinned memory lies beside its GPU, on the socket that the GPU hangs on, but for the part that the cluster says lies
// on another (topology.remote_memory). A job that uses some of a host's GPUs may fill their socket while the other is
// empty. What then lands there crosses the sockets at every copy, or is refused where memory is bound: a budget of its
// own. Every socket has the same part of the host's memory.
#include <algorithm>
#include <vector>

#include "planner/evaluator.hpp"

namespace ebb {

HostBytes Evaluator::host(const Candidate& candidate) {
  Candidate key;  // chunk sizes and slots do not change what lies on the host, but for what tidal keeps
  key.policy = candidate.policy;
  key.fraction = candidate.fraction;
  if (candidate.policy == Policy::tidal) key = candidate;
  const auto known = host_.find(key);
  if (known != host_.end()) return known->second;
  HostBytes most;
  for (const RankModel& rank : ranks_.ranks()) {
    const HostBytes bytes = host_bytes(rank, candidate);
    most.pinned = std::max(most.pinned, bytes.pinned);
    most.pageable = std::max(most.pageable, bytes.pageable);
    most.calls = std::max(most.calls, bytes.calls);
  }
  return host_[key] = most;
}

/// Beside the socket that holds most.
Bytes Evaluator::pinned_per_socket(Bytes per_rank) const {
  const Cluster& cluster = job_->cluster;
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(cluster.host.sockets));
  for (std::int64_t place = 0; place < ranks_per_host_; ++place)
    ++ranks[static_cast<std::size_t>(socket_of(cluster, place))];
  const std::int64_t most = *std::max_element(ranks.begin(), ranks.end());
  if (cluster.host.sockets == 1) return per_rank * most;
  // Of each rank's memory a part lies on the other sockets, evenly.
  const double remote = cluster.topology.remote_memory.value;
  const double away = remote / static_cast<double>(cluster.host.sockets - 1);
  const double here = (1 - remote) * static_cast<double>(most) + away * static_cast<double>(ranks_per_host_ - most);
  const double there = (1 - remote) * static_cast<double>(ranks_per_host_ - most) + away * static_cast<double>(most);
  const bool two = cluster.host.sockets == 2;
  return Bytes{static_cast<std::int64_t>(static_cast<double>(per_rank.value) * (two ? std::max(here, there) : here))};
}

Bytes Evaluator::socket_memory() const {
  return Bytes{job_->cluster.host.memory.value.value / job_->cluster.host.sockets};
}

bool Evaluator::fits_host(const Candidate& candidate) {
  const HostBytes bytes = host(candidate);
  const std::int64_t ranks = ranks_per_host_;
  // The budget is for pinned memory; what is pageable must find room as well, wherever.
  return bytes.pinned * ranks <= host_budget_of(*job_) && pinned_per_socket(bytes.pinned) <= socket_memory() &&
         (bytes.pinned + bytes.pageable) * ranks <= job_->cluster.host.memory.value;
}

void Evaluator::add_host(Answer& answer) {
  const HostBytes bytes = host(answer.candidate);
  answer.host_pinned_per_rank = bytes.pinned;
  answer.host_pinned_per_host = bytes.pinned * ranks_per_host_;
  answer.host_pinned_per_socket = pinned_per_socket(bytes.pinned);
  answer.socket_memory = socket_memory();
  answer.host_pageable_per_host = bytes.pageable * ranks_per_host_;
  answer.fits_host = fits_host(answer.candidate);
}

}  // namespace ebb
