// A bf16 matrix product on tensor cores: the stand-in for forward and backward compute.
//
// Why our own: replay needs work that loads the tensor cores and the memory as training does, without a dependency on
// a BLAS library and its workspace. Not a library: square matrices, sizes a multiple of kGemmMultiple, one layout.
#pragma once

#include <cstdint>

namespace ebb::kernels {

inline constexpr std::int64_t kGemmMultiple = 128;

/// Operands of `size` x `size` bf16, 16-byte aligned. c[i][j] = sum over k of a[i][k] b[j][k], accumulated in fp32:
/// A is stored by rows, B by columns, C by rows.
struct Gemm {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  std::int64_t size = 0;
};

constexpr double gemm_flops(std::int64_t size) {
  return 2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
}
constexpr std::int64_t gemm_bytes(std::int64_t size) { return 3 * 2 * size * size; }

[[nodiscard]] int launch_gemm(const Gemm& gemm, void* stream);

/// Element (row, column) in double, from host memory. The kernel's rounding differs in order, so it is close, not
/// equal.
double gemm_element_ref(const Gemm& gemm, std::int64_t row, std::int64_t column);

}  // namespace ebb::kernels
