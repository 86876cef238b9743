// Pieces: a pinned region is registered with the driver piece by piece, and a copy must not cross two of them.
//
// Why pieces. From driver 580 on, one cudaHostRegister of 512 GiB or more fails: 16 bytes for each 4 KiB page are kept
// in one kernel allocation, which must stay below 2 GiB (NVIDIA/open-gpu-kernel-modules pull request 1234; measured in
// vLLM issue 51080: 511.96 GiB pins, 512.15 GiB does not). 64 GiB is far below that and large enough that few copies
// meet a border.
// Why not across. CUDA wants the host side of a copy "entirely registered", and says nothing about two registrations
// side by side; cudaMemcpyBatchAsync refuses them (SGLang pull request 36798). So a copy is cut at the border.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/units.hpp"

namespace ebb::replay {

inline constexpr Bytes kPinPiece = 64_GiB;

/// Calls part(at, bytes) for each part of [at, at + bytes) that lies in one piece, in order. Preconditions: at >= 0,
/// bytes >= 0, piece > 0.
template <class Part>
void for_each_piece(Bytes at, Bytes bytes, Part part, Bytes piece = kPinPiece) {
  for (const Bytes end = at + bytes; at < end;) {
    const Bytes border{(at.value / piece.value + 1) * piece.value};
    const Bytes stop = std::min(border, end);
    part(at, stop - at);
    at = stop;
  }
}

}  // namespace ebb::replay
