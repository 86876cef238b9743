// The product's reference: rows of A times rows of B (B is stored by columns).
#include "kernels/gemm.hpp"

#include <cstdint>
#include <vector>

#include "kernels/types.hpp"
#include "tests/catch.hpp"

using namespace ebb::kernels;

TEST_CASE("an element is the sum of products of small integers, exactly") {
  constexpr std::int64_t kSize = 5;
  std::vector<std::uint16_t> a, b;
  for (int i = 0; i < kSize * kSize; ++i) {
    a.push_back(bf16_from_fp32(static_cast<float>(i - 7)));
    b.push_back(bf16_from_fp32(static_cast<float>(3 * i % 11)));
  }
  const Gemm gemm{.a = a.data(), .b = b.data(), .size = kSize};
  for (int row = 0; row < kSize; ++row) {
    for (int column = 0; column < kSize; ++column) {
      int want = 0;
      for (int k = 0; k < kSize; ++k) want += (row * 5 + k - 7) * (3 * (column * 5 + k) % 11);
      REQUIRE(gemm_element_ref(gemm, row, column) == want);
    }
  }
}

TEST_CASE("operations and bytes of a product") {
  REQUIRE(gemm_flops(2048) == 2.0 * 2048 * 2048 * 2048);
  REQUIRE(gemm_bytes(4096) == 96 * 1024 * 1024);
}
