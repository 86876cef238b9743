#include "replay/training.hpp"

#include "kernels/digest.hpp"

namespace ebb::replay {

std::uint64_t next_seed(std::uint64_t seed, std::uint64_t digest) {
  return kernels::mix64(seed * kernels::kDigestStride ^ digest);
}

}  // namespace ebb::replay
