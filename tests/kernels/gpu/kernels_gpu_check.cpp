// Proves on a real GPU that every kernel gives its reference's bits: random sizes, tails, misalignments and special
// values, outputs poisoned before and everything around them compared after.
//
//   kernels_gpu_check [--large]     exit 0: all the same; 1: a difference; 3: no GPU or a CUDA error
//
// --large adds runs beyond 2^31 elements (34 GB of device memory). Not a ctest: it needs a GPU.
#include <cstdio>
#include <string_view>

#include "tests/kernels/gpu/checks.hpp"

int main(int argc, char** argv) {
  using namespace ebb::kernels::gpu;
  const bool large = argc > 1 && std::string_view(argv[1]) == "--large";
  bool same = true;
  for (const auto check :
       {check_conversions, check_division, check_adamw, check_foreach, check_norm, check_elementwise, check_digest,
        check_objective, check_gemm, check_gate, check_quantize, check_quantize_tails}) {
    same &= check();
  }
  if (large) same &= check_large();
  std::printf("%s\n", same ? "all the same" : "DIFFERENT");
  return same ? 0 : 1;
}
