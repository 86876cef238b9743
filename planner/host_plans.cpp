#include "planner/host_plans.hpp"

#include <algorithm>
#include <map>

#include "models/errors.hpp"
#include "planner/evaluator.hpp"
#include "planner/verify.hpp"
#include "planner/verify_together.hpp"

namespace ebb {

namespace {

std::vector<Plan> plans_of_places(const Job& job, const Candidate& candidate, const HostModel& host) {
  std::map<std::int64_t, StageLayout> stages;  // by pipeline rank; a RankModel points into it
  std::vector<Plan> plans;
  for (std::size_t place = 0; place < host.class_of_place.size(); ++place) {
    const std::int64_t rank = host.first_rank + static_cast<std::int64_t>(place);
    const std::int64_t pipeline = coordinates_of(job, rank).pipeline;
    auto stage = stages.find(pipeline);
    if (stage == stages.end()) stage = stages.emplace(pipeline, stage_layout(job, pipeline)).first;
    plans.push_back(lower(rank_model(job, stage->second, rank), candidate));
    EBB_ASSERT(verify(plans.back()).empty());
  }
  EBB_ASSERT(verify_together(plans).empty());
  return plans;
}

}  // namespace

HostPlans host_plans(const Job& job, const Candidate& candidate) {
  Evaluator evaluator(job);
  const std::size_t slowest = evaluator.slowest(candidate).rank;
  const HostModel& host = evaluator.hosts().hosts()[evaluator.hosts().host_of(slowest)];
  HostPlans result;
  result.plans = plans_of_places(job, candidate, host);

  sim::HostRuns runs;
  runs.first_rank = host.first_rank;
  runs.class_of_place = host.class_of_place;
  runs.plans.resize(host.models.size());
  for (std::size_t place = host.class_of_place.size(); place-- > 0;)
    runs.plans[host.class_of_place[place]] = &result.plans[place];
  std::vector<Timeline> of_classes;
  sim::Simulator().run(runs, job.cluster, of_classes);
  for (const std::uint32_t cls : host.class_of_place) result.timelines.push_back(of_classes[cls]);
  return result;
}

}  // namespace ebb
