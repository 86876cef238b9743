// Which matrix formats a GPU has, told by its name: the CUDA compute capability decides which FP8 and FP4 recipes run.
// A name that is not known has no answer, and nothing is concluded from it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ebb {

struct ComputeCapability {
  int major = 0;
  int minor = 0;

  constexpr auto operator<=>(const ComputeCapability&) const = default;
};

/// Of a GPU by the name that the driver gives it ("NVIDIA H200"). Source: NVIDIA's list of CUDA GPUs.
std::optional<ComputeCapability> compute_capability(std::string_view gpu_name);

}  // namespace ebb
