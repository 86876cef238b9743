// Why an executor waits for everything between two parts (docs/life.md): a step's last ops may still be in flight when
// its host has come to its end. Then two parts that follow each other without that wait give other numbers, or a
// checkpoint of old state, in some order; with it they give those of the parts one by one in every order.
#include <algorithm>
#include <map>

#include "models/errors.hpp"
#include "replay/reference_run.hpp"
#include "tests/catch.hpp"
#include "tests/replay/joined_parts.hpp"
#include "tests/replay/life_cases.hpp"
#include "tests/replay/memory_checkpoint.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

/// What is there after the second of two parts.
struct End {
  std::vector<std::uint64_t> states;  // by rank, without parameters, which a step leaves to the next forward to gather
  MemoryCheckpoint saved;
  std::int64_t strays = 0;
  bool operator==(const End&) const = default;
};

/// init, the first step, then `parts`.
End end_of(const std::vector<LifeRank>& ranks, const std::vector<LifePart>& parts, const MemoryCheckpoint& loaded,
           const ReferenceOptions& order) {
  const TrainingOptions training;
  ReferenceRun run(ranks, training, order.held_back, order.most_on);
  TrainingPlace place = first_place(training);
  End end;
  MemoryCheckpoint from = loaded;
  const auto begin = [&](LifePart part) {
    for (std::size_t r = 0; r < run.size(); ++r) {
      run.rank(r).set_place(place);
      run.rank(r).checkpoint = (part == LifePart::reload ? from : end.saved).of(run.rank(r).plan());
    }
    run.part(part);
  };
  begin(LifePart::init);
  begin(LifePart::first_step);
  place = after_step(training, place, false, 0);
  for (const LifePart part : parts) begin(part);
  for (std::size_t r = 0; r < run.size(); ++r) {
    const ReferenceRank::FinalDigests digests = run.rank(r).final_digests();
    end.states.push_back(digests.state - digests.parameters);
    end.strays += run.rank(r).strays();
  }
  return end;
}

/// Every rank's `next` begins with its step.
std::vector<Plan> with_step_before(const std::vector<Plan>& plans, LifePart next, bool drain) {
  std::map<std::int64_t, const Plan*> steps;
  for (const Plan& plan : plans)
    if (plan.part == LifePart::step) steps[plan.rank] = &plan;
  std::vector<Plan> changed = plans;
  for (Plan& plan : changed)
    if (plan.part == next) plan = joined(*steps.at(plan.rank), plan, drain);
  return changed;
}

/// In how many orders the two parts in one give something else than one by one.
int differing_orders(const std::vector<Plan>& plans, LifePart next, bool drain) {
  const std::vector<LifeRank> apart = compile_ranks(plans);
  const MemoryCheckpoint loaded = end_of(apart, {LifePart::save}, {}, {}).saved;
  const End good = end_of(apart, {LifePart::step, next}, loaded, {});
  REQUIRE(good.strays == 0);
  const std::vector<Plan> changed = with_step_before(plans, next, drain);
  const std::vector<LifeRank> together = compile_ranks(changed);
  int differing = 0;
  for (const ReferenceOptions& order : all_orders(together.size(), {}, 0)) {
    try {
      differing += end_of(together, {next}, loaded, order) == good ? 0 : 1;
    } catch (const InputError&) {
      ++differing;  // ranks that wait for each other for ever
    }
  }
  return differing;
}

}  // namespace

TEST_CASE("A part that does not wait for what the step before it began shows it: the drain between parts is needed") {
  // Chunked and pipelined wait for their last copies before a step ends, so that only the others need it there; a skip
  // begins as a step does, which brings no state that is on its way but full-reload's and tidal's, whose first ops take
  // away what the step before has left on the device.
  const std::map<LifePart, std::vector<Policy>> shown = {
      {LifePart::save, {Policy::resident, Policy::full_reload, Policy::windowed, Policy::tidal}},
      {LifePart::skip, {Policy::full_reload, Policy::tidal}},
      {LifePart::reload, {Policy::resident, Policy::full_reload, Policy::windowed, Policy::tidal}}};
  for (const auto& [next, policies] : shown) {
    std::map<Policy, int> noticed;
    for (const int gpus : {1, 2}) {
      const Job job = smallest_life_job(gpus);
      for (const Candidate& candidate : life_candidates(owned_by_first(job))) {
        INFO(gpus << " ranks, " << text_of(candidate) << ", step then " << name_of(next));
        const std::vector<Plan> plans = host_life(job, candidate).plans;
        CHECK(differing_orders(plans, next, true) == 0);
        noticed[candidate.policy] += differing_orders(plans, next, false);
      }
    }
    for (const auto& [policy, orders] : noticed) {
      INFO("step then " << name_of(next) << ", " << name_of(policy));
      CHECK((orders > 0) == (std::find(policies.begin(), policies.end(), policy) != policies.end()));
    }
  }
}
