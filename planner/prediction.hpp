// Predictions for a replay: timelines of whole plans, from a job's own cluster or from another (a calibrated one).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/cluster.hpp"
#include "models/timeline_file.hpp"

namespace ebb {

/// The file that `ebb diff` compares a run with. Preconditions: as many timelines as plans, each with its plan's ops;
/// at least one.
TimelineFile prediction_of(std::span<const Plan> plans, std::span<const Timeline> timelines,
                           const std::string& cluster);

/// The ranks of a plan file together on one host of `cluster`, each at its own place. InputError at `file` where they
/// cannot run there: ranks with gaps, more of them than GPUs, hazards, ops without a meaning.
std::vector<Timeline> simulate_plans(std::span<const Plan> plans, const Cluster& cluster, const std::string& file);

}  // namespace ebb
