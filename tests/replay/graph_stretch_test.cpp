// Which policies' optimizer steps can be a CUDA graph, on the planner's own plans of a tiny job.
#include "replay/graph_stretch.hpp"

#include "tests/catch.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using replay::GraphStretch;

namespace {

Plan plan_of(const Candidate& candidate) { return host_plans(test::tiny_job(), candidate).plans[0]; }

}  // namespace

TEST_CASE("a graph holds all copies and kernels of the optimizer step where the host does not come in between") {
  for (const Candidate& candidate : {Candidate{.policy = Policy::resident}, Candidate{.policy = Policy::full_reload},
                                     Candidate{.policy = Policy::pipelined, .chunk_numel = {1001}, .slots = 3}}) {
    INFO(test::text_of(candidate));
    const Plan plan = plan_of(candidate);
    const GraphStretch stretch = replay::graph_stretch(plan);
    REQUIRE_FALSE(stretch.empty());
    for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
      const Op& op = plan.ops[i];
      const bool work = op.kind == OpKind::copy_h2d || op.kind == OpKind::copy_d2h || op.kind == OpKind::kernel;
      CHECK(stretch.holds(i) == (work && op.phase == Phase::step));
    }
  }
}

TEST_CASE("where the host works or waits between chunks there is no graph, and the reason names an op") {
  for (const Candidate& candidate :
       {Candidate{.policy = Policy::chunked, .chunk_numel = {5000}}, Candidate{.policy = Policy::cpu_adam}}) {
    INFO(test::text_of(candidate));
    const GraphStretch stretch = replay::graph_stretch(plan_of(candidate));
    CHECK(stretch.empty());
    CHECK(stretch.why_not.find("op ") == 0);
  }
}
