// The table of parameters of a plan that goes to a file: what a checkpoint calls the pieces of state, and where each
// parameter lies. Not in plans of a search, which nobody saves.
#pragma once

#include "planner/lower.hpp"

namespace ebb {

/// Fills plan.parameters, ascending by place, and says of each shard which one it is of. Names are unique in the whole
/// model: where ranks of a tensor- or expert-parallel group hold different parameters of one name, or stages copies of
/// one, the place is appended ("... [tp 1/2]"). Precondition: `plan` is of `rank`, as lower_part() left
/// it: buffers of largest values name parameters of the stage until now.
void describe_parameters(const RankModel& rank, Plan& plan);

}  // namespace ebb
