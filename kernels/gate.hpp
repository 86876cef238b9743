// Kernels that wait: a gate that holds a stream until the host opens it, and a delay that slows a stream.
//
// Why: with every stream held until all work is enqueued, the host's enqueueing cannot show in the timings; and a
// stress test slows one stream to bring out a missing dependency. One thread each: they occupy an SM's corner, not the
// GPU.
#pragma once

#include <cstdint>

namespace ebb::kernels {

/// Holds `stream` until *flag >= value. `flag` is the device's address of mapped pinned host memory; the host raises it
/// with a release store. After `timeout_ns` the gate opens by itself (a dead host must not hang the GPU) and sets
/// *timed_out, also mapped memory, to 1 unless it is null.
[[nodiscard]] int launch_gate(const int* flag, int value, std::uint64_t timeout_ns, int* timed_out, void* stream);

/// Keeps `stream` busy for `ns` nanoseconds of the GPU's global timer.
[[nodiscard]] int launch_delay(std::uint64_t ns, void* stream);

}  // namespace ebb::kernels
