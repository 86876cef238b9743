#include "planner/activations.hpp"

#include <algorithm>
#include <vector>

#include "planner/allocation_trace_stage.hpp"

namespace ebb {

std::int64_t padded_vocabulary(const Job& job) {
  return round_up(job.model.vocab, job.model.vocab_divisible_by * job.parallel.tensor);
}

StageActivations stage_activations(const Job& job, const StageLayout& stage) {
  TracePart part;
  TraceBuilder trace;
  trace.start(part);
  StageTrace run(trace, job, stage, {});
  run.begin_warm();
  run.run();
  const std::vector<AllocationEvent>& events = part.events;
  const std::vector<std::size_t>& ends = run.forward_ends();

  std::vector<Bytes> alive(trace.tensors(), Bytes{0});
  Bytes live{0};
  Bytes peak{0};
  StageActivations result;
  std::size_t end = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    for (; end < ends.size() && ends[end] == i; ++end) result.saved = std::max(result.saved, live);
    const AllocationEvent& event = events[i];
    if (event.kind == AllocationEvent::Kind::allocate) alive[event.tensor] = event.bytes;
    live += event.kind == AllocationEvent::Kind::allocate ? event.bytes : -1 * alive[event.tensor];
    peak = std::max(peak, live);
  }
  result.shared_buffer = run.shared_buffer();
  result.gradient_stand_ins = run.gradient_stand_ins();
  result.turn = peak - result.saved;
  return result;
}

}  // namespace ebb
