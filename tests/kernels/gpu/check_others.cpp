// The matrix product against its reference, the gate and the delay against a clock.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "kernels/gate.hpp"
#include "kernels/gemm.hpp"
#include "kernels/types.hpp"
#include "tests/kernels/gpu/cases.hpp"
#include "tests/kernels/gpu/checks.hpp"
#include "tests/kernels/gpu/device.hpp"

namespace ebb::kernels::gpu {
namespace {

// Values in [-1, 1): of the order of `size` products of 1/3 are summed, in fp32 and in another order, and the sum is
// rounded to bf16.
bool same_product(std::int64_t size, std::int64_t every, std::mt19937& engine) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<std::uint16_t> a(static_cast<std::size_t>(size * size)), b(a), c(a.size() + 64, 0x7fff);
  for (auto* operand : {&a, &b}) {
    for (std::uint16_t& x : *operand) x = bf16_from_fp32(uniform(engine));
  }
  const std::size_t bytes = 2 * a.size();
  const DeviceBytes on_a(2 * size * size), on_b(2 * size * size), on_c(2 * size * size + 128);
  copy(on_a.get(), a.data(), bytes), copy(on_b.get(), b.data(), bytes), copy(on_c.get(), c.data(), bytes + 128);
  check(launch_gemm({.a = on_a.get(), .b = on_b.get(), .c = on_c.get(), .size = size}, nullptr), "gemm");
  finish("gemm");
  copy(c.data(), on_c.get(), bytes + 128);
  for (std::size_t i = a.size(); i < c.size(); ++i) {
    if (c[i] != 0x7fff) return std::printf("  product wrote behind its end\n"), false;
  }
  const Gemm host{.a = a.data(), .b = b.data(), .size = size};
  for (std::int64_t i = 0; i < size * size; i += every) {
    const double want = gemm_element_ref(host, i / size, i % size);
    const double got = static_cast<double>(fp32_from_bf16(c[static_cast<std::size_t>(i)]));
    const double allowed = std::abs(want) * 0x1p-8 + static_cast<double>(size) * 0x1p-22;
    if (std::abs(got - want) <= allowed) continue;  // false for NaN
    std::printf("  product of size %lld: element %lld is %g, must be %g\n", static_cast<long long>(size),
                static_cast<long long>(i), got, want);
    return false;
  }
  return true;
}

/// An int in mapped pinned memory.
class MappedInt {
 public:
  MappedInt() {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, sizeof(int), cudaHostAllocMapped), "cudaHostAlloc");
    host_ = static_cast<volatile int*>(memory);
    *host_ = 0;
    void* device = nullptr;
    check(cudaHostGetDevicePointer(&device, memory, 0), "cudaHostGetDevicePointer");
    device_ = static_cast<int*>(device);
  }
  ~MappedInt() { cudaFreeHost(const_cast<int*>(host_)); }
  MappedInt(const MappedInt&) = delete;
  MappedInt& operator=(const MappedInt&) = delete;
  volatile int& host() { return *host_; }
  int* device() { return device_; }

 private:
  volatile int* host_;
  int* device_;
};

bool that(bool truth, const char* what) {
  if (!truth) std::printf("  not so: %s\n", what);
  return truth;
}

}  // namespace

bool check_gemm() {
  std::mt19937 engine(6);
  const bool same = same_product(128, 1, engine) & same_product(256, 1, engine) & same_product(384, 7, engine) &
                    same_product(1152, 101, engine) & same_product(2048, 1009, engine);
  std::printf("%-12s %5d cases: %s\n", "gemm", 5, same ? "within fp32 accumulation" : "DIFFERENT");
  return same;
}

bool check_gate() {
  using namespace std::chrono_literals;
  MappedInt flag, timed_out;
  check(launch_gate(flag.device(), 2, 5'000'000'000, timed_out.device(), nullptr), "gate");
  std::this_thread::sleep_for(20ms);
  bool right = that(cudaStreamQuery(nullptr) == cudaErrorNotReady, "a closed gate holds its stream");
  flag.host() = 1;
  std::this_thread::sleep_for(20ms);
  right &= that(cudaStreamQuery(nullptr) == cudaErrorNotReady, "a lower value does not open it");
  flag.host() = 2;
  finish("gate");
  right &= that(timed_out.host() == 0, "a gate that was opened has not timed out");

  const auto begin = std::chrono::steady_clock::now();
  check(launch_gate(flag.device(), 3, 30'000'000, timed_out.device(), nullptr), "gate");
  finish("gate");
  const auto waited = std::chrono::steady_clock::now() - begin;
  right &= that(timed_out.host() == 1 && waited > 29ms && waited < 1s, "a gate that nobody opens times out");

  const double seconds = median_seconds([] { check(launch_delay(2'000'000, nullptr), "delay"); }, 5, 1);
  right &= that(seconds > 1.9e-3 && seconds < 2.5e-3, "a delay of 2 ms takes 2 ms");
  std::printf("%-12s %5d cases: %s\n", "gate", 5, right ? "as they should be" : "DIFFERENT");
  return right;
}

}  // namespace ebb::kernels::gpu
