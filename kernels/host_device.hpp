// Marks functions that host code and kernels share; nothing where nvcc is not the compiler.
#pragma once

#ifdef __CUDACC__
#define EBB_HOST_DEVICE __host__ __device__
#else
#define EBB_HOST_DEVICE
#endif
