// load, load_params, reload: the state of a checkpoint takes its place. State on the device is written there, window by
// window through pinned staging. What the host keeps for chunked and windowed is brought back on the device first,
// chunk by chunk, written, and offloaded again; pipelined and cpu-adam read straight into host memory. Parameters
// follow from the masters and are gathered, so that all bits are those of the run that saved; where there are no
// masters they come out of the checkpoint themselves. load_params touches no moments: its masters are made from saved
// parameters. Source of the order: Megatron-LM pull request 6544 (released state is reloaded before a load writes into
// it and offloaded afterwards).
#include <algorithm>
#include <bit>

#include "planner/checkpoint_staging.hpp"
#include "planner/life_parts.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/owned_runs.hpp"
#include "planner/quantization.hpp"
#include "planner/state_homes.hpp"

namespace ebb {

namespace {

class Loader {
 public:
  Loader(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate);
  void run();

 private:
  std::int64_t size(std::uint8_t states) const { return state_bytes_per_element(homes_.precision, states); }
  bool exists(std::uint8_t states) const;
  void into_device_homes();
  void into_host();
  void through_window(std::uint32_t k);
  void cast_from_host(std::uint32_t k);
  OpId window_copy(OpKind direction, std::uint8_t states, std::uint32_t k, BufferId buffer, OpId dep);
  OpId make_params(std::uint32_t chunk, ElementRange range, BufferId masters, OpId dep);
  BufferId window_buffer(std::uint32_t k, std::uint8_t states);

  PlanBuilder& plan_;
  const RankModel& rank_;
  const Candidate& candidate_;
  StateHomes homes_;
  StepFrame frame_;
  std::uint8_t states_;       // that come out of the checkpoint
  bool params_from_masters_;  // else they come out of it, too
  bool straight_to_host_;
  CheckpointStaging staging_;
};

std::uint8_t loaded_states(LifePart part, const Precision& precision) {
  if (part != LifePart::load_params) return held_states(precision);
  return precision.optimizer_holds_masters() ? std::uint8_t{0}
                                             : static_cast<std::uint8_t>(held_states(precision) & kMaster);
}

Loader::Loader(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate)
    : plan_(plan),
      rank_(rank),
      candidate_(candidate),
      homes_(state_homes(plan, rank, candidate)),
      frame_(plan, rank, homes_.frame),
      states_(loaded_states(plan.part(), homes_.precision)),
      params_from_masters_((states_ & kMaster) != 0 && !homes_.precision.keeps_remainders()),
      straight_to_host_(cuts_elements(candidate.policy) || candidate.policy == Policy::cpu_adam),
      staging_(plan, rank, Phase::load,
               std::max(homes_.precision.state_bytes(), std::int64_t{size_of(homes_.precision.params)})) {}

bool Loader::exists(std::uint8_t states) const {
  return (states & kMoments) ? moments_exist(plan_.part()) : masters_exist(plan_.part(), homes_.precision);
}

/// Of what is not quantised; the last op.
OpId Loader::make_params(std::uint32_t chunk, ElementRange range, BufferId masters, OpId dep) {
  OpId last = dep;
  for (const OwnedRun& run : owned_runs(rank_, homes_.precision, range)) {
    if (run.quantized) continue;
    last = plan_.add({.kind = OpKind::kernel,
                      .phase = Phase::load,
                      .work = Work::cast,
                      .states = kMaster | kParams,
                      .stream = kComputeStream,
                      .chunk = chunk,
                      .calls = homes_.packed ? 1 : run.tensors,
                      .buffer = masters,
                      .bytes = bytes_of(run.range.numel(), cast_bytes_per_element(homes_.precision)),
                      .range = run.range},
                     {dep});
  }
  return last;
}

void Loader::into_device_homes() {
  for (const DeviceHome& home : homes_.device) {
    const auto states = static_cast<std::uint8_t>(home.states & states_);
    if (states == 0) continue;
    OpId room;
    if (!exists(states)) {
      const auto tensors = std::max(1U, static_cast<std::uint32_t>(std::popcount(states)) * home.part.tensors());
      room = plan_.allocate(home.buffer, Phase::load, kNoChunk, tensors);
    }
    const OpId in = staging_.fetch(states, home.part.range, size(states), home.buffer, room);
    if ((states & kMaster) && params_from_masters_) make_params(kNoChunk, home.part.range, home.buffer, in);
  }
}

BufferId Loader::window_buffer(std::uint32_t k, std::uint8_t states) {
  const StateWindow& window = homes_.windows[k];
  const Bytes bytes = states == kMaster ? window.masters : window.bytes;
  const BufferId buffer = plan_.buffer("load window", k, bytes, Phase::load);
  plan_.state(buffer, states, window.range, homes_.packed);
  return buffer;
}

OpId Loader::window_copy(OpKind direction, std::uint8_t states, std::uint32_t k, BufferId buffer, OpId dep) {
  const StateWindow& window = homes_.windows[k];
  return plan_.add({.kind = direction,
                    .phase = Phase::load,
                    .states = states,
                    .stream = direction == OpKind::copy_h2d ? kH2d : kD2h,
                    .chunk = k,
                    .calls = homes_.packed ? 1 : window.tensors * static_cast<std::uint32_t>(std::popcount(states)),
                    .buffer = buffer,
                    .bytes = bytes_of(window.range.numel(), size(states)),
                    .range = window.range},
                   {dep});
}

/// Released state comes back, is written into, and goes again.
void Loader::through_window(std::uint32_t k) {
  const auto states = static_cast<std::uint8_t>(homes_.windowed & states_);
  const StateWindow& window = homes_.windows[k];
  const BufferId buffer = window_buffer(k, states);
  const OpId room = plan_.allocate(buffer, Phase::load, k, window.tensors);
  OpId ready = staging_.fetch(states, window.range, size(states), buffer, room);
  if ((states & kMaster) && params_from_masters_) ready = make_params(k, window.range, buffer, ready);
  const OpId out = window_copy(OpKind::copy_d2h, states, k, buffer, ready);
  plan_.add({.kind = OpKind::host_wait, .phase = Phase::load, .stream = kHost, .chunk = k}, {out});
  plan_.release(buffer, Phase::load, {}, OpId::none(), k);
}

/// The host's masters pass through a window and leave parameters.
void Loader::cast_from_host(std::uint32_t k) {
  const StateWindow& window = homes_.windows[k];
  if (owned_runs(rank_, homes_.precision, window.range).front().quantized) return;
  const BufferId buffer = window_buffer(k, kMaster);
  const OpId room = plan_.allocate(buffer, Phase::load, k, window.tensors);
  const OpId in = window_copy(OpKind::copy_h2d, kMaster, k, buffer, room);
  const OpId cast = make_params(k, window.range, buffer, in);
  plan_.release(buffer, Phase::load, {cast}, OpId::none(), k);
}

void Loader::into_host() {
  if (!straight_to_host_) {
    if ((homes_.windowed & states_) == 0) return;
    for (std::uint32_t k = 0; k < homes_.windows.size(); ++k) through_window(k);
    return;
  }
  const std::uint8_t wanted = plan_.part() == LifePart::load_params ? states_ | kMaster : kAllState;
  for (const HostHome& home : homes_.host) {
    // The host's own Adam has masters of fp32 parameters, too.
    const auto states = static_cast<std::uint8_t>(home.states & (homes_.packed ? states_ : wanted));
    if (states == 0) continue;
    const std::int64_t bytes = states == kMaster ? homes_.master_size : size(states);
    plan_.add({.kind = OpKind::host_work,
               .phase = Phase::load,
               .work = Work::fetch,
               .states = states,
               .host = home.memory,
               .stream = kHost,
               .bytes = bytes_of(home.range.numel(), bytes),
               .range = home.range});
  }
  if (homes_.packed && params_from_masters_)
    for (std::uint32_t k = 0; k < homes_.windows.size(); ++k) cast_from_host(k);
  if (homes_.host_masters.tensors() > 0) params_from_host(plan_, rank_, homes_.host_masters, Phase::load);
}

void Loader::run() {
  plan_.add({.kind = OpKind::host_wait, .phase = Phase::load, .stream = kHost});
  into_device_homes();
  into_host();
  if (!params_from_masters_) {
    const ElementRange owned{homes_.host_masters.range.end, rank_.owned.value};
    staging_.fetch(kParams, owned, size_of(homes_.precision.params), frame_.params(), OpId::none());
  }
  // What was copied in last is read on the compute stream.
  if (quantizes_explicitly(homes_.precision))
    plan_.add({.kind = OpKind::host_wait, .phase = Phase::load, .stream = kHost}, {plan_.last_on(kH2d)});
  if (params_from_masters_) quantize_homes(plan_, rank_, candidate_, Phase::load);
  frame_.gather_all(Phase::load);
  // A step begins with the gradient copies of the step before it.
  if (frame_.grad_copies().valid() && plan_.part() == LifePart::load) plan_.allocate(frame_.grad_copies(), Phase::load);
  plan_.add({.kind = OpKind::host_wait, .phase = Phase::load, .stream = kHost},
            {plan_.last_on(kH2d), plan_.last_on(kD2h), plan_.last_on(kComputeStream), plan_.last_on(kComm)});
}

}  // namespace

void lower_load(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate) {
  Loader(plan, rank, candidate).run();
}

}  // namespace ebb
