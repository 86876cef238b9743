// Random values of elements: what fills and the objective draw, on host and device.
#pragma once

#include <cstdint>

#include "kernels/elementwise.hpp"
#include "kernels/host_device.hpp"
#include "kernels/objective.hpp"
#include "kernels/philox.hpp"

namespace ebb::kernels {

EBB_HOST_DEVICE constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
EBB_HOST_DEVICE constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

EBB_HOST_DEVICE constexpr std::uint32_t lane_of(const Philox& p, std::uint64_t lane) {
  return lane == 0 ? p.x : lane == 1 ? p.y : lane == 2 ? p.z : p.w;
}

/// Draws of a fill for elements [4 group, 4 group + 4).
EBB_HOST_DEVICE constexpr Philox random_group(std::uint64_t seed, std::uint64_t group) {
  return philox({low(group), high(group), 0, kFillDomain}, low(seed), high(seed));
}
/// One rounding: uniform_pm1 is exact.
EBB_HOST_DEVICE constexpr float random_value(std::uint32_t bits, float scale) { return uniform_pm1(bits) * scale; }

/// The objective's draws for elements [4 group, 4 group + 4): targets, and noise.
EBB_HOST_DEVICE constexpr Philox target_group(const ObjectiveKey& key, std::uint64_t group) {
  return philox({low(group), high(group), 0, 0xffffffffU}, low(key.seed), high(key.seed));
}
EBB_HOST_DEVICE constexpr Philox noise_group(const ObjectiveKey& key, std::uint64_t group) {
  const std::uint64_t seed = key.seed ^ kNoiseKey;
  return philox({low(group), high(group), key.step, key.micro ^ key.rank * 0x9e3779b9U}, low(seed), high(seed));
}

}  // namespace ebb::kernels
