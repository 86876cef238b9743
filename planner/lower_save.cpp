// save: what a checkpoint takes leaves from where it lies. State that the host keeps is written from there; state on
// the device, and the parameters of owned elements, leave window by window through pinned staging. Nothing is brought
// to the device, and it ends as it began. Source of the rule: Megatron-LM pull request 6544 (a save reads the host
// copies).
#include <algorithm>

#include "models/memory/torch_allocator.hpp"
#include "planner/checkpoint_staging.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/owned_runs.hpp"
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

/// Quantised ones are brought to the model's type window by window, in the only device memory that a save takes.
void store_params(PlanBuilder& plan, const RankModel& rank, const Precision& precision, BufferId params,
                  CheckpointStaging& staging) {
  const std::int64_t size = size_of(precision.params);
  BufferId dequantized;
  for (const OwnedRun& run : owned_runs(rank, precision, {0, rank.owned.value})) {
    if (!run.quantized) {
      staging.store(kParams, run.range, size, params);
      continue;
    }
    if (!dequantized.valid()) {
      const Bytes bytes = memory::allocated_bytes(bytes_of(std::min(rank.owned, Numel{kCheckpointWindow}), size));
      dequantized = plan.buffer("dequantised", Memory::device, bytes, false, Phase::save);
      plan.role(dequantized, Role::staging);
      plan.allocate(dequantized, Phase::save);
    }
    staging.store_dequantized(run.range, size, dequantized);
  }
  if (dequantized.valid()) plan.release(dequantized, Phase::save, {plan.last_on(kD2h)});
}

}  // namespace

void lower_save(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate) {
  const StateHomes homes = state_homes(plan, rank, candidate);
  const Precision& precision = homes.precision;
  StepFrame frame(plan, rank, homes.frame);
  std::int64_t most = size_of(precision.params);
  for (const DeviceHome& home : homes.device) most = std::max(most, state_bytes_per_element(precision, home.states));
  CheckpointStaging staging(plan, rank, Phase::save, most);
  // The drain: parts begin when all that the part before began has ended (docs/life.md, between parts). No op of this
  // plan is what is waited for, so it has no dependencies.
  plan.add({.kind = OpKind::host_wait, .phase = Phase::save, .stream = kHost});
  for (const DeviceHome& home : homes.device)
    staging.store(home.states, home.part.range, state_bytes_per_element(precision, home.states), home.buffer);
  store_params(plan, rank, precision, frame.params(), staging);
  staging.finish();
  store_from_host(plan, homes);
}

}  // namespace ebb
