// `--robust`, NUMA budgets and objectives: what is held against a schedule, and which is picked.
#include "planner/robust.hpp"

#include <algorithm>

#include "models/job_yaml.hpp"
#include "planner/constraints.hpp"
#include "planner/recommend.hpp"
#include "planner/search.hpp"
#include "planner/set_value.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

Job library_job(const std::string& name) { return load_job(EBB_SOURCE_DIR "/models/jobs/" + name + ".yaml"); }

Job worst_of(const Job& job) {
  std::vector<std::string> assumptions;
  Job worst = at_its_worst(job, assumptions);
  CHECK_FALSE(assumptions.empty());
  return worst;
}

}  // namespace

TEST_CASE("figures lose by how well they are known, and what the user set loses nothing") {
  Job job = library_job("llama3-8b-hgx-h200");
  job.cluster.host_link.d2h.source = "datasheet: PCIe Gen5 x16";
  job.cluster.host_link.latency.source = kSetSource;
  job.cluster.host.cpu_adam.source = kSetSource;
  const Job worst = worst_of(job);
  CHECK(worst.cluster.host_link.h2d.value.value == Approx(0.95 * 55.4e9));
  CHECK(worst.cluster.host_link.d2h.value.value == Approx(0.73 * 55.3e9));
  CHECK(worst.cluster.host_link.host_both.value.value == Approx(0.73 * 548e9));
  CHECK(worst.cluster.host.cpu_adam.value == job.cluster.host.cpu_adam.value);
  CHECK(worst.cluster.host_link.both.value <= worst.cluster.host_link.h2d.value + worst.cluster.host_link.d2h.value);
  CHECK(worst.cluster.host.memory.value < job.cluster.host.memory.value);
  CHECK_FALSE(is_measured("measured: two at once; here scaled to eight"));
  CHECK(is_measured("measured: one H200, driver 580.159"));
  check(worst);
}

TEST_CASE("a robust pick is no faster, needs no less, and holds when the run is resumed") {
  for (const char* name : {"llama3-8b-hgx-h200", "measured-1.8b-1xh200"}) {
    Job job = library_job(name);
    if (job.parallel.gpus == 1) job.budget.device = 30_GiB;
    const SearchResult likely = search(job, {.cures = false});
    const SearchResult robust = search_robustly(worst_of(job), job.checkpoint.start, {.cures = false});
    REQUIRE(likely.recommended);
    REQUIRE(robust.recommended);
    const Answer& pick = robust.candidates[*robust.recommended];
    INFO(name << ": " << name_of(pick.candidate.policy));
    CHECK(pick.step >= likely.candidates[*likely.recommended].step);
    CHECK(pick.device_resume <= robust.device_budget);
    const Answer fresh = evaluate(job, pick.candidate);
    CHECK(fresh.feasible());
    CHECK(fresh.device_resume <= likely.device_budget);
    CHECK(fresh.device_reserved <= pick.device_reserved);
  }
}

TEST_CASE("a job on one socket of two is over the NUMA budget where the host alone would do") {
  Job job = library_job("llama3-8b-hgx-h200");
  job.parallel.gpus = 4;
  check(job);
  const Candidate candidate{.policy = Policy::chunked, .chunk_numel = {1'000'000'000}};
  const Answer roomy = evaluate(job, candidate);
  CHECK(roomy.fits_host);
  CHECK(roomy.host_pinned_per_socket == roomy.host_pinned_per_host);
  // Four ranks pin so much; the host has half as much again, but three quarters of it on each socket.
  job.budget.host.reset();
  job.cluster.host.memory.value = Bytes{roomy.host_pinned_per_host.value / 2 * 3};
  const Answer tight = evaluate(job, candidate);
  CHECK_FALSE(tight.fits_host);
  CHECK(host_need_of(tight).find("over the NUMA budget by") != std::string::npos);
  // Interleaved, half of it lies on the other socket.
  job.cluster.topology.remote_memory.value = 0.5;
  CHECK(evaluate(job, candidate).fits_host);
  // On one socket there is nothing to cross.
  job.cluster.topology.remote_memory.value = 0;
  job.cluster.host.sockets = 1;
  CHECK(evaluate(job, candidate).fits_host);
}

TEST_CASE("objectives pick from what can be deployed and fits: against every row and every point of the front") {
  for (const char* name : {"measured-1.8b-1xh200", "llama3-8b-hgx-h200", "deepseek-v2-lite-4xgh200"}) {
    const Job job = library_job(name);
    const auto pick_of = [&](Objective objective) {
      const SearchResult result = search(job, {.objective = objective, .cures = false, .front = true});
      REQUIRE(result.recommended);
      const Answer& pick = result.candidates[*result.recommended];
      CHECK(pick.deployable);
      CHECK(pick.feasible());
      std::int64_t fastest = thousandths(pick.slowdown);
      for (const Answer& a : result.front)
        if (a.deployable && a.feasible()) fastest = std::min(fastest, thousandths(a.slowdown));
      for (const Answer& a : result.front) {
        if (!a.deployable || !a.feasible()) continue;
        const bool near = thousandths(a.slowdown) <= balanced_limit(fastest);
        if (objective == Objective::memory || (objective == Objective::balanced && near))
          CHECK(a.device_reserved >= pick.device_reserved);
      }
      if (objective == Objective::balanced) CHECK(thousandths(pick.slowdown) <= balanced_limit(fastest));
      return pick;
    };
    INFO(name);
    const Answer step = pick_of(Objective::step);
    const Answer memory = pick_of(Objective::memory);
    const Answer balanced = pick_of(Objective::balanced);
    CHECK(memory.device_reserved <= balanced.device_reserved);
    CHECK(balanced.device_reserved <= step.device_reserved);
  }
  CHECK(balanced_limit(1000) == 1020);
  CHECK(objective_named("balanced") == Objective::balanced);
  CHECK_FALSE(objective_named("fast"));
}
