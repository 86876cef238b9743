// resident: all state stays on the device; one Adam call over everything. The baseline of every comparison.
#include "planner/device_state.hpp"
#include "planner/life_parts.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/step_frame.hpp"

namespace ebb {

void lower_resident(PlanBuilder& plan, const RankModel& rank) {
  const Job& job = *rank.job;
  const AdamKernel kernel = job.adam_of(Policy::resident);
  const Part all = whole(rank);
  const DeviceState state = device_state(plan, job.precision, all, kAllState);
  StepFrame frame(plan, rank, standard_frame(rank));
  frame.zero_grads();
  frame.forward_backward();
  frame.finalize();
  if (is_skip(plan.part())) return;
  step_on_device(plan, rank, job.precision, kernel, all, state);
  quantize_params(plan, rank);
  frame.close();
}

}  // namespace ebb
