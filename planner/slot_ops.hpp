// SlotOps: what happens to state that lies packed in a slot of exactly so many elements: in, Adam, out. What Ebb's own
// policies (pipelined, tidal) are made of. Internal to lowering.
#pragma once

#include "planner/lowerings.hpp"
#include "planner/owned_runs.hpp"

namespace ebb {

/// One copy of `states` of `range` between slot and packed host state.
OpId slot_copy(PlanBuilder& plan, const RankModel& rank, OpKind direction, Phase phase, std::uint8_t states,
               std::uint32_t chunk, ElementRange range, BufferId buffer, OpId after);

/// Adam over what the slot holds once `in` has ended. Quantised parameters are written in a pass of their own.
OpId slot_adam(PlanBuilder& plan, const RankModel& rank, std::uint32_t chunk, const OwnedRun& run, BufferId buffer,
               OpId in);

/// State of a chunk into its slot: from the host, or made where it does not exist yet. The last op.
OpId fill_slot(PlanBuilder& plan, const RankModel& rank, Phase phase, std::uint32_t chunk, ElementRange range,
               BufferId buffer, OpId free);

}  // namespace ebb
