// WindowedPart: what one chained optimizer of the windowed policy moves and keeps, and in which chunks. Dense and
// expert optimizers have a manager each. Internal to lowering; the schedule is in lower_windowed.cpp.
#pragma once

#include <vector>

#include "planner/device_state.hpp"
#include "planner/lowerings.hpp"

namespace ebb {

struct WindowedPart {
  Part moves;  // in optimizer order, before what stays
  Part stays;
  std::vector<Part> chunks;  // of `moves`, numbered through all managers
};
std::vector<WindowedPart> windowed_parts(const RankModel& rank, std::int64_t chunk_size_mb, double fraction);

/// Moments of a chunk lie in one flat buffer a type, every tensor aligned to 256 bytes.
Bytes moment_window_bytes(const Precision& precision, std::span<const Shard> shards);

/// Masters of what moves: on the device between steps. `number` of the manager.
DeviceState moved_masters(PlanBuilder& plan, const Precision& precision, const WindowedPart& part, std::size_t number);
/// All state of what stays.
DeviceState kept_state(PlanBuilder& plan, const Precision& precision, const WindowedPart& part, std::size_t number);

}  // namespace ebb
