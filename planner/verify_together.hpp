// Verification of the plans of several ranks of one job together: what only shows between ranks, and hangs a job.
//
// A communicator is the set of ranks of a collective (group_of). Its ranks meet in the order in which each issues: the
// k-th operation of one is the k-th of all. Two things can go wrong:
//
//   mismatch   ranks do not issue the same sequence of (work, bytes, domains), or one issues more
//   deadlock   all sequences match, but one rank runs a meeting of X before one of Y, another Y before X; in general,
//   the
//              graph of all ops of all plans, in which the ops of one meeting are one node, has a cycle
//
// Members without a plan here are not looked at: plans of one rank of a group say nothing about the others. Collectives
// over the same ranks count as one communicator: stricter than NCCL where a job opens several over the same ranks.
// Not here: each plan on its own (verify.hpp).
#pragma once

#include <span>
#include <vector>

#include "planner/hazard.hpp"

namespace ebb {

struct JobHazard {
  HazardKind kind = HazardKind::collective_mismatch;
  CommGroup group;
  std::int64_t first_rank = 0;
  std::int64_t second_rank = 0;
  OpId first;   // in the plan of first_rank; none(): it issues nothing more on the communicator
  OpId second;  // in the plan of second_rank; none(): the same
  /// Deadlock: in the plan of second_rank, the order that the other ranks have. Its `first` comes later there, and has
  /// to move.
  std::optional<Edge> missing;
  std::string text;
};

/// Mismatches by communicator, each against its lowest rank here, the first of each rank; when there are none, at most
/// one deadlock. Preconditions: the plans' ranks differ; no op depends on a later one. O(plans * communicators + ops +
/// deps).
std::vector<JobHazard> verify_together(std::span<const Plan> plans);

}  // namespace ebb
