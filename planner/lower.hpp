// Lowering: one rank's job under one candidate -> a Plan of its steady training step, or of another part of its life.
// Training steps of any kind (steady, first, skipped) have one file per policy (lower_*.cpp); what all share
// (zero_grad, forward, backward, finalize, clip, gather) is in step_frame.hpp. Init, loads and saves have one file each
// (lower_init.cpp, lower_load.cpp, lower_save.cpp), over where each policy keeps its state (state_homes.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/job.hpp"
#include "models/plan.hpp"
#include "planner/compute_model.hpp"
#include "planner/footprint.hpp"
#include "planner/layout.hpp"
#include "planner/overlap_pieces.hpp"

namespace ebb {

struct TidalMemory;

/// Everything about one rank that no candidate changes. Built once, lowered many times.
struct RankModel {
  const Job* job = nullptr;            // outlives the model
  const StageLayout* stage = nullptr;  // outlives the model
  std::int64_t rank = 0;               // a global rank with these coordinates
  std::vector<Shard> shards;           // optimizer order
  Numel owned{0};
  PaddedOrder padded;
  Footprint footprint;
  ComputeTime compute;
  std::shared_ptr<TidalMemory> tidal;  // what tidal's lowering has worked out (tidal_pieces.hpp); copies share it
};
RankModel rank_model(const Job& job, const StageLayout& stage, std::int64_t rank);

/// The steady training step. Precondition: the candidate's parameters are valid for its policy (constraints.hpp).
Plan lower(const RankModel& rank, const Candidate& candidate);
/// The same into `plan`, whose memory is reused: for searches that lower thousands of candidates.
void lower_into(const RankModel& rank, const Candidate& candidate, Plan& plan);

/// Any part of the job's life: how each part begins and ends is in life_parts.hpp.
Plan lower_part(const RankModel& rank, const Candidate& candidate, LifePart part);

/// Pinned and pageable host bytes the policy holds for the rank, as torch's pinned allocator rounds them (each
/// tensor up to a power of two), or exact for Ebb's own runtime.
struct HostBytes {
  Bytes pinned{0};
  Bytes pageable{0};
  std::int64_t calls = 0;  // pinned blocks
};
HostBytes host_bytes(const RankModel& rank, const Candidate& candidate);

}  // namespace ebb
