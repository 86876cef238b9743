// Masters that the host makes of the initial values of quantised parameters: fp32 of what the model's type holds of
// them (training.hpp), written where the plan keeps them on the host. By several threads: a CPU draws counter-based
// random numbers slowly. Not here: which elements and where (program.hpp, HostMasters).
#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/host_adam.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

/// `type`: of parameters (fp32, bf16, fp16). `pinned`: the pinned part of the host store.
void make_host_masters(HostPool& pool, const HostMasters& masters, Dtype type, std::uint64_t seed, std::byte* pinned);

}  // namespace ebb::replay
