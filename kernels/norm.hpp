// The global L2 norm of gradients in a fixed order, the clip coefficient, and the count of non-finite elements.
//
// Why a fixed order: a norm that depended on the number of SMs or on timing would change the bits of every weight. The
// sum runs in double (the square of an fp32 is exact there): each run is cut into tiles of kSumTile elements from its
// first element; a tile is summed by lanes and a tree (sum_order.hpp); the tiles' sums, in the order of runs, likewise.
// So the result depends on values and on the list of runs, not on addresses, launches or the GPU.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/runs.hpp"
#include "kernels/types.hpp"

namespace ebb::kernels {

/// Bytes of workspace (8-byte aligned device memory) that launch_sum_of_squares writes.
std::int64_t sum_of_squares_workspace(std::span<const Run> runs);

/// *sum = the sum of squares over all runs of an fp32 or bf16 array, rounded to fp32 (0 without elements). `sum` is
/// device memory: it can be all-reduced before clip_coefficient.
[[nodiscard]] int launch_sum_of_squares(Type type, const void* base, std::span<const Run> runs, void* workspace,
                                        float* sum, void* stream);
float sum_of_squares_ref(Type type, const void* base, std::span<const Run> runs);

/// What clipping reads and writes, in device memory (in host memory for the reference). `norm` and `nonfinite` may be
/// null. `inverse_scale` is 1 / the loss scale: gradients are clipped by the norm that they have without it, and the
/// coefficient takes it out of them.
struct Clip {
  const float* sum = nullptr;          // sum of squares
  float* norm = nullptr;               // sqrt(sum) * inverse_scale
  float* coefficient = nullptr;        // inverse_scale * (max_norm / (norm + 1e-6) if below 1, otherwise 1, NaN too)
  std::uint32_t* nonfinite = nullptr;  // 1 if the sum is infinite or NaN, otherwise 0
};
[[nodiscard]] int launch_clip_coefficient(const Clip& clip, float max_norm, void* stream, float inverse_scale = 1);
void clip_coefficient_ref(const Clip& clip, float max_norm, float inverse_scale = 1);

/// *count += the infinite and NaN elements (device memory, 8-byte aligned; the caller zeroes it). Any type.
[[nodiscard]] int launch_count_nonfinite(Type type, const void* base, std::span<const Run> runs, std::uint64_t* count,
                                         void* stream);
std::uint64_t count_nonfinite_ref(Type type, const void* base, std::span<const Run> runs);

}  // namespace ebb::kernels
