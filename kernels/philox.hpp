// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011): random bits as a function of (counter, key), so that every element can be drawn alone.
#pragma once

#include <cstdint>

#include "kernels/host_device.hpp"

namespace ebb::kernels {

struct Philox {
  std::uint32_t x, y, z, w;
};

/// The bits of counter {x, y, z, w} under a key of two words.
EBB_HOST_DEVICE constexpr Philox philox(Philox c, std::uint32_t key0, std::uint32_t key1) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t a = static_cast<std::uint64_t>(0xd2511f53U) * c.x;  // multipliers: the paper, table 2
    const std::uint64_t b = static_cast<std::uint64_t>(0xcd9e8d57U) * c.z;
    c = {static_cast<std::uint32_t>(b >> 32) ^ c.y ^ key0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c.w ^ key1, static_cast<std::uint32_t>(a)};
    key0 += 0x9e3779b9U;  // golden ratio
    key1 += 0xbb67ae85U;  // sqrt(3) - 1
  }
  return c;
}

/// Uniform in [-1, 1): the upper 24 bits as a signed fraction, exact in fp32.
EBB_HOST_DEVICE constexpr float uniform_pm1(std::uint32_t bits) {
  return static_cast<float>(static_cast<std::int32_t>(bits) >> 8) * 0x1p-23F;
}

}  // namespace ebb::kernels
