// Workspaces of the matrix libraries: what they allocate on first use and keep. Counted by torch's allocator.
//
// torch gives each (cuBLAS handle, stream) one workspace, and each thread has a handle of its own: one for forward and
// one for autograd's thread. Transformer Engine has one for its own products, and one for each of the four streams of
// its grouped products. Sources: torch aten/src/ATen/cuda/CublasHandlePool.cpp (parseChosenWorkspaceSize: 32 MiB from
// compute capability 9.0 on, else two of 4 MiB and eight of 16 KiB), TransformerEngine pytorch/cpp_extensions/gemm.py
// (get_cublas_workspace_size_bytes: 32 MiB from 9.0 on, else 4 MiB; get_multi_stream_cublas_workspace).
// Recorded: 96.00 MiB beside parameters, gradients and state for dense stages with Transformer Engine, to 5 KiB.
//
// Not here: user buffers of --tp-comm-overlap, buffers of NCCL (the driver's, not torch's).
#pragma once

#include <vector>

#include "models/job.hpp"
#include "planner/layer_tape.hpp"

namespace ebb {

/// What the first use of `what` allocates.
std::vector<Bytes> workspaces_of(const Job& job, FirstUse what);

/// All of them, once the job has trained a step.
Bytes matrix_workspaces(const Job& job);
Bytes grouped_matrix_workspaces(const Job& job);

}  // namespace ebb
