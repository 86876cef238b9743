// What quick_division.hpp asks of the device's approximations, for every significand: reciprocals good enough for
// Markstein's theorem, roots as the CPU's; and 2^32 quotients as the compiler's.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/kernels/gpu/checks.hpp"
#include "tests/kernels/gpu/device.hpp"
#include "tests/kernels/gpu/divide.hpp"

namespace ebb::kernels::gpu {
namespace {

constexpr std::uint32_t kOne = 0x3f800000, kSignificands = 1U << 23;

template <class Launch>
std::vector<float> from_device(std::size_t count, Launch launch) {
  DeviceBytes device(static_cast<std::int64_t>(4 * count));
  check(launch(device.as<float>()), "division");
  finish("division");
  std::vector<float> host(count);
  copy(host.data(), device.get(), 4 * count);
  return host;
}

std::int64_t wrong_reciprocals(float scale) {
  const auto got = from_device(kSignificands, [&](float* out) { return launch_reciprocals(scale, out); });
  std::int64_t wrong = 0;
  for (std::uint32_t i = 0; i < kSignificands; ++i) {
    const double y = static_cast<double>(std::bit_cast<float>(kOne + i)) * scale;
    const double error = std::abs(1 - y * got[i]);  // exact
    if (error * (kSignificands + i + 1.0) < 1) continue;
    if (wrong++ == 0) std::printf("  reciprocal of %a: %a\n", y, got[i]);
  }
  return wrong;
}

std::int64_t wrong_roots(float scale) {
  const auto got = from_device(2 * std::size_t{kSignificands}, [&](float* out) { return launch_roots(scale, out); });
  std::int64_t wrong = 0;
  for (std::uint32_t i = 0; i < 2 * kSignificands; ++i) {
    const float x = std::bit_cast<float>(kOne + i) * scale;
    if (got[i] == std::sqrt(x)) continue;
    if (wrong++ == 0) std::printf("  root of %a: %a\n", x, got[i]);
  }
  return wrong;
}

std::int64_t wrong_quotients() {
  constexpr unsigned kBlocks = 4096;
  DeviceBytes device(8);
  unsigned long long count = 0;
  copy(device.get(), &count, sizeof count);
  check(launch_compare_quotients(1, kBlocks, device.as<unsigned long long>()), "division");
  finish("division");
  copy(&count, device.get(), sizeof count);
  return static_cast<std::int64_t>(count);
}

}  // namespace

bool check_division() {
  std::int64_t wrong = 0;
  for (const float scale : {0x1p-45F, 1.0F, 0x1p30F}) wrong += wrong_reciprocals(scale);
  for (const float scale : {0x1p-90F, 1.0F, 0x1p58F}) wrong += wrong_roots(scale);
  const std::int64_t quotients = wrong_quotients();
  if (quotients != 0) std::printf("  %lld quotients\n", static_cast<long long>(quotients));
  const bool same = wrong == 0 && quotients == 0;
  std::printf("%-12s all significands, 2^32 quotients: %s\n", "division", same ? "same bits" : "DIFFERENT");
  return same;
}

}  // namespace ebb::kernels::gpu
