// The parts of kernels_gpu_check. Each prints one line and returns whether all it compared was the same.
#pragma once

namespace ebb::kernels::gpu {

bool check_division();
bool check_adamw();
bool check_foreach();
bool check_norm();
bool check_elementwise();
bool check_conversions();
bool check_digest();
bool check_objective();
bool check_gemm();
bool check_gate();
bool check_quantize();
bool check_quantize_tails();
bool check_large();  // 34 GB of device memory

}  // namespace ebb::kernels::gpu
