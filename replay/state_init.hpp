// The state of a rank before its first step, and its digest after the last: both go by Program::before and after.
//
// Masters are uniform by padded element and seed, so that ranks and policies agree on them whoever holds them;
// parameters are their rounding; moments are 0. Host state is made on the device and copied out, piece by piece: a
// hundred gigabytes of counter-based random numbers take a CPU minutes. Not here: what lies where.
#pragma once

#include <cstdint>

#include "replay/device_memory.hpp"
#include "replay/host_store.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

/// Waits for the end. The host store's bytes are still zero, as it was made.
void init_state(const Program& program, const DeviceMemory& memory, const HostStore& store, std::uint64_t seed,
                void* stream);

/// RankNumbers::final_state. Waits for the end.
std::uint64_t final_digest(const Program& program, const DeviceMemory& memory, const HostStore& store, void* stream);

}  // namespace ebb::replay
