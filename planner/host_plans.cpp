#include "planner/host_plans.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "models/errors.hpp"
#include "planner/describe_parameters.hpp"
#include "planner/evaluator.hpp"
#include "planner/life_sequence.hpp"
#include "planner/tidal_room.hpp"
#include "planner/verify.hpp"
#include "planner/verify_together.hpp"

namespace ebb {

namespace {

constexpr std::array kAllParts = {LifePart::step,        LifePart::init,   LifePart::load,
                                  LifePart::load_params, LifePart::reload, LifePart::first_step,
                                  LifePart::first_skip,  LifePart::skip,   LifePart::save};
static_assert(kAllParts.size() == kPartCount);

/// The plans of `parts` of every rank of the host, by rank, then part; the ranks of each part verified together.
std::vector<Plan> plans_of_places(const Evaluator& evaluator, const Candidate& candidate, const HostModel& host,
                                  std::span<const LifePart> parts) {
  const Job& job = evaluator.job();
  std::map<std::int64_t, StageLayout> stages;  // by pipeline rank; a RankModel points into it
  std::vector<Plan> plans;
  for (std::size_t place = 0; place < host.class_of_place.size(); ++place) {
    const std::int64_t rank = host.first_rank + static_cast<std::int64_t>(place);
    const std::int64_t pipeline = coordinates_of(job, rank).pipeline;
    auto stage = stages.find(pipeline);
    if (stage == stages.end()) stage = stages.emplace(pipeline, stage_layout(job, pipeline)).first;
    const RankModel model = rank_model(job, stage->second, rank);
    share_tidal_cap(model, evaluator.ranks().front());
    for (const LifePart part : parts) {
      plans.push_back(lower_part(model, candidate, part));
      describe_parameters(model, plans.back());
      EBB_ASSERT(verify(plans.back()).empty());
    }
  }
  return plans;
}

/// Those of one part: every `stride`-th from `first` on.
std::vector<Plan> every(std::span<const Plan> plans, std::size_t first, std::size_t stride) {
  std::vector<Plan> some;
  for (std::size_t i = first; i < plans.size(); i += stride) some.push_back(plans[i]);
  return some;
}

HostPlans plans_and_times(const Job& job, const Candidate& candidate, std::span<const LifePart> parts) {
  Evaluator evaluator(job);
  const std::size_t slowest = evaluator.slowest(candidate).rank;
  const HostModel& host = evaluator.hosts().hosts()[evaluator.hosts().host_of(slowest)];
  HostPlans result;
  result.plans = plans_of_places(evaluator, candidate, host, parts);
  result.timelines.resize(result.plans.size());
  sim::Simulator simulator;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    EBB_ASSERT(verify_together(every(result.plans, part, parts.size())).empty());
    sim::HostRuns runs;
    runs.first_rank = host.first_rank;
    runs.class_of_place = host.class_of_place;
    runs.plans.resize(host.models.size());
    for (std::size_t place = host.class_of_place.size(); place-- > 0;)
      runs.plans[host.class_of_place[place]] = &result.plans[place * parts.size() + part];
    std::vector<Timeline> of_classes;
    simulator.run(runs, job.cluster, of_classes);
    for (std::size_t place = 0; place < host.class_of_place.size(); ++place)
      result.timelines[place * parts.size() + part] = of_classes[host.class_of_place[place]];
  }
  return result;
}

}  // namespace

HostPlans host_plans(const Job& job, const Candidate& candidate) {
  return plans_and_times(job, candidate, std::array{LifePart::step});
}

HostPlans host_life(const Job& job, const Candidate& candidate) {
  HostPlans life = plans_and_times(job, candidate, kAllParts);
  for (std::size_t first = 0; first < life.plans.size(); first += kAllParts.size())
    EBB_ASSERT(life_breaks(std::span(life.plans).subspan(first, kAllParts.size())).empty());
  return life;
}

}  // namespace ebb
