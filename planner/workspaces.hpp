// Workspaces of the matrix libraries: what they allocate on first use and keep. Counted by torch's allocator.
//
// torch gives each (cuBLAS handle, stream) one workspace, and each thread has a handle of its own: one for forward and
// one for autograd's thread. Transformer Engine has one for its own products, and one for each of the four streams of
// its grouped products; products that overlap with tensor-parallel communication have one for three streams together.
// Sources: torch aten/src/ATen/cuda/CublasHandlePool.cpp (parseChosenWorkspaceSize: 32 MiB from
// compute capability 9.0 on, else two of 4 MiB and eight of 16 KiB), TransformerEngine pytorch/cpp_extensions/gemm.py
// (get_cublas_workspace_size_bytes: 32 MiB and 1 KiB from 9.0 on, else 4 MiB; get_cublas_workspace).
// Recorded: 96 MiB and 4.5 KiB beside parameters, gradients and state for dense stages with Transformer Engine.
//
// Not here: user buffers themselves and NCCL's, which are the driver's, not torch's.
#pragma once

#include <vector>

#include "models/job.hpp"
#include "planner/layer_tape.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// What the first use of `what` allocates; nothing where the job has no such products.
std::vector<Bytes> workspaces_of(const Job& job, FirstUse what);

/// All of them, once the job has trained a step.
Bytes matrix_workspaces(const Job& job);
Bytes grouped_matrix_workspaces(const Job& job);

}  // namespace ebb
