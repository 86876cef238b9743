// StateHomes: where a policy keeps optimizer state between steps, and the windows through which what the host keeps is
// brought to the device and back. What init, loads and saves walk over; the buffers themselves and their names are the
// same in all parts of a life.
//
//   policy       on the device                       on the host                     windows
//   resident     all                                 -                               -
//   full-reload  all                                 (leaves in forward)             -
//   windowed     masters, and all of what stays      moments                         its chunks
//   chunked      -                                   all                             its chunks
//   pipelined    -                                   all, packed                     its slots
//   tidal        what a step leaves, what is kept    the rest, packed                its pieces
//   cpu-adam     all of what stays                   masters; moments, pageable      -
//
// Internal to lowering.
#pragma once

#include <vector>

#include "planner/device_state.hpp"
#include "planner/step_frame.hpp"

namespace ebb {

/// One buffer of state that outlives a step.
struct DeviceHome {
  BufferId buffer;
  std::uint8_t states = 0;
  Part part;
};

struct HostHome {
  std::uint8_t states = 0;
  ElementRange range;
  Memory memory = Memory::pinned;
};

/// Elements that come to the device together.
struct StateWindow {
  ElementRange range;
  std::uint32_t tensors = 0;  // shards, or 1 where they are packed
  Bytes bytes{0};             // of a buffer that holds StateHomes::windowed of them
  Bytes masters{0};           // ... masters alone
};

struct StateHomes {
  Precision precision;  // that the policy works in
  FrameOptions frame;
  std::vector<DeviceHome> device;
  std::vector<HostHome> host;
  std::uint8_t windowed = 0;          // states that the windows carry
  bool packed = false;                // the windows' layout, and the host's
  std::vector<StateWindow> windows;   // in which a step walks over them
  std::vector<StateWindow> builders;  // finer ones, where masters are made shard by shard
  std::int64_t master_size = 0;       // bytes of a master on the host
  std::vector<Shard> cut;             // of the parts above whose shards are not the rank's own
  Part host_masters;                  // cpu-adam: whose parameters come from the host's masters
};

/// Gathered FP8 weights of the masters that are in their homes, where the recipe quantises explicitly: as the policy's
/// step does, but for what it would carry out again. Last op on the compute stream.
void quantize_homes(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate, Phase phase);

/// Also makes the buffers of what is on the device.
StateHomes state_homes(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate);

}  // namespace ebb
