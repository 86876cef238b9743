// save: what a checkpoint takes leaves from where it lies. State that the host keeps is written from there; state on
// the device, and the parameters of owned elements, leave window by window through pinned staging. Nothing is brought
// to the device, and it ends as it began. Source of the rule: Megatron-LM pull request 6544 (a save reads the host
// copies).
#include <algorithm>

#include "planner/checkpoint_staging.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/state_homes.hpp"

namespace ebb {

namespace {

/// fp32, where the host steps copies of its own.
std::int64_t host_size(const StateHomes& homes, const HostHome& home) {
  if (home.states == kMaster) return homes.master_size;
  return state_bytes_per_element(homes.precision, home.states);
}

void store_from_host(PlanBuilder& plan, const StateHomes& homes) {
  for (const HostHome& home : homes.host)
    plan.add({.kind = OpKind::host_work,
              .phase = Phase::save,
              .work = Work::store,
              .states = home.states,
              .host = home.memory,
              .stream = kHost,
              .bytes = bytes_of(home.range.numel(), host_size(homes, home)),
              .range = home.range});
}

}  // namespace

void lower_save(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate) {
  const StateHomes homes = state_homes(plan, rank, candidate);
  const Precision& precision = homes.precision;
  StepFrame frame(plan, rank, homes.frame);
  std::int64_t most = size_of(precision.params);
  for (const DeviceHome& home : homes.device) most = std::max(most, state_bytes_per_element(precision, home.states));
  CheckpointStaging staging(plan, rank, rank.owned, most);
  // What the part before left in flight.
  plan.add({.kind = OpKind::host_wait, .phase = Phase::save, .stream = kHost});
  for (const DeviceHome& home : homes.device)
    staging.store(home.states, home.part.range, state_bytes_per_element(precision, home.states), home.buffer);
  staging.store(kParams, {0, rank.owned.value}, size_of(precision.params), frame.params());
  staging.finish();
  store_from_host(plan, homes);
}

}  // namespace ebb
