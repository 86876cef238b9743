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

/// What is there before a life's init: parameters in their first values, by padded element; quantised ones, whose
/// values the host keeps until the init plan quantises them, and their scales are zeros. Waits for the end.
void init_parameters(const Program& init, const DeviceMemory& memory, std::uint64_t seed, void* stream);

/// RankNumbers::final_state, and what of it comes from the parameters: by padded index, quantised ones as bytes; their
/// scales as bytes by their place, with the tag of gradients.
struct FinalDigest {
  std::uint64_t all = 0;
  std::uint64_t parameters = 0;
};
/// Waits for the end.
FinalDigest final_digest(const Program& program, const DeviceMemory& memory, const HostStore& store, void* stream);

}  // namespace ebb::replay
