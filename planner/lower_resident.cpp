// resident: all state stays on the device; one Adam call over everything. The baseline of every comparison.
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/step_frame.hpp"

namespace ebb {

void lower_resident(PlanBuilder& plan, const RankModel& rank) {
  const Job& job = *rank.job;
  const AdamKernel kernel = job.adam_of(Policy::resident);
  const Part all = whole(rank);
  const BufferId state =
      plan.buffer("optimizer state", Memory::device, allocated_state(job.precision, rank.shards, kAllState), true);
  plan.state(state, held_states(job.precision), all.range);
  StepFrame frame(plan, rank, standard_frame(rank));
  frame.zero_grads();
  frame.forward_backward();
  frame.finalize();
  step_on_device(plan, rank, job.precision, kernel, all, state);
  quantize_params(plan, rank);
  frame.close();
}

}  // namespace ebb
