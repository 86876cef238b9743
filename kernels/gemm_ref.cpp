// One element of the matrix product in double, for comparison.
#include <cstdint>

#include "kernels/access_ref.hpp"
#include "kernels/gemm.hpp"

namespace ebb::kernels {

double gemm_element_ref(const Gemm& gemm, std::int64_t row, std::int64_t column) {
  const char* const a = static_cast<const char*>(gemm.a) + row * gemm.size * 2;
  const char* const b = static_cast<const char*>(gemm.b) + column * gemm.size * 2;
  double sum = 0;
  for (std::int64_t k = 0; k < gemm.size; ++k) {
    sum +=
        static_cast<double>(read_value(Type::bf16, a + 2 * k)) * static_cast<double>(read_value(Type::bf16, b + 2 * k));
  }
  return sum;
}

}  // namespace ebb::kernels
