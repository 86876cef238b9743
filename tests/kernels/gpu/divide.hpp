// The quick divisions and the root on the device, for every significand (divide.cu).
#pragma once

#include <cstdint>

namespace ebb::kernels::gpu {

/// out[i] = the refined reciprocal of (1 + i 2^-23) scale, i below 2^23. Returns the launch's cudaError_t, as the
/// others.
int launch_reciprocals(float scale, float* out);
/// out[i] = the root of x scale, x the float of bits 0x3f800000 + i: 1 to 4, i below 2^24.
int launch_roots(float scale, float* out);
/// Adds to *count how many of `blocks` 2^20 random pairs in the safe range are not divided as the compiler divides.
int launch_compare_quotients(std::uint32_t seed, unsigned blocks, unsigned long long* count);

}  // namespace ebb::kernels::gpu
