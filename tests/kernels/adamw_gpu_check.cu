// Proves on a real GPU that launch_adamw gives adamw_ref's bits, and times it against a device-to-device copy.
//
//   adamw_gpu_check [--large]     exit 0: all equal; 1: a difference; 3: no GPU or a CUDA error
//
// --large adds a run of 2^31 + 5 elements (34 GB of device memory, no bf16). Not a ctest: it needs a GPU.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "kernels/adamw.hpp"

using namespace ebb::kernels;

namespace {

void check(int code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "adamw_gpu_check: %s: %s\n", what, cudaGetErrorString(static_cast<cudaError_t>(code)));
  std::exit(3);
}

/// Device memory for the life of the object.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::int64_t numel) {
    check(cudaMalloc(&data_, static_cast<std::size_t>(numel) * sizeof(T)), "cudaMalloc");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

template <class T>
void upload(const DeviceArray<T>& to, const std::vector<T>& from) {
  check(cudaMemcpy(to.get(), from.data(), from.size() * sizeof(T), cudaMemcpyDefault), "copy to the device");
}

template <class T>
bool equal(const char* name, const DeviceArray<T>& device, const std::vector<T>& want) {
  std::vector<T> got(want.size());
  check(cudaMemcpy(got.data(), device.get(), got.size() * sizeof(T), cudaMemcpyDefault), "copy to the host");
  if (std::memcmp(got.data(), want.data(), got.size() * sizeof(T)) == 0) return true;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) == 0) continue;
    std::printf("  %s[%zu] is %.9g, must be %.9g\n", name, i, static_cast<double>(got[i]),
                static_cast<double>(want[i]));
    break;
  }
  return false;
}

/// Where the run starts in each array, in elements: equal shifts can be vectorised, different ones cannot.
struct Shifts {
  std::int64_t param, grad, exp_avg, exp_avg_sq, bf16;
};

constexpr std::int64_t kPad = 8;  // elements around the run that must not change

/// Random weights, gradients of many magnitudes, now and then an infinity, a NaN or a subnormal.
std::vector<float> random_floats(std::int64_t numel, std::uint32_t seed, float scale, bool specials, bool negative) {
  std::vector<float> values(static_cast<std::size_t>(numel));
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  const float special[] = {std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(),
                           -std::numeric_limits<float>::infinity(),
                           1e-42F,
                           -0.0F,
                           3e38F};
  for (float& value : values) {
    value = std::ldexp(normal(engine) * scale, static_cast<int>(engine() % 24) - 20);
    if (specials && engine() % 97 == 0) value = special[engine() % std::size(special)];
    if (!negative) value = std::abs(value);
  }
  return values;
}

bool check_run(std::int64_t numel, const Shifts& shifts, bool bf16) {
  const std::int64_t size = numel + kPad;
  std::vector<float> param = random_floats(size, 1, 1, false, true);
  const std::vector<float> grad = random_floats(size, 2, 1e-2F, true, true);
  std::vector<float> exp_avg = random_floats(size, 3, 1e-3F, false, true);
  std::vector<float> exp_avg_sq = random_floats(size, 4, 1e-5F, false, false);
  std::vector<std::uint16_t> half(static_cast<std::size_t>(size), 0xabcd);  // poison: every element must be written
  DeviceArray<float> d_param(size), d_grad(size), d_exp_avg(size), d_exp_avg_sq(size);
  DeviceArray<std::uint16_t> d_half(size);
  upload(d_param, param), upload(d_grad, grad), upload(d_exp_avg, exp_avg), upload(d_exp_avg_sq, exp_avg_sq);
  upload(d_half, half);

  const AdamwStep step = adamw_step({.learning_rate = 3e-4F, .beta2 = 0.95F, .weight_decay = 0.1F}, 5);
  const auto run = [&](float* p, const float* g, float* m, float* v, std::uint16_t* h) {
    return AdamwArrays{p + shifts.param,
                       g + shifts.grad,
                       m + shifts.exp_avg,
                       v + shifts.exp_avg_sq,
                       bf16 ? h + shifts.bf16 : nullptr,
                       numel};
  };
  adamw_ref(run(param.data(), grad.data(), exp_avg.data(), exp_avg_sq.data(), half.data()), step);
  check(
      launch_adamw(run(d_param.get(), d_grad.get(), d_exp_avg.get(), d_exp_avg_sq.get(), d_half.get()), step, nullptr),
      "launch");
  check(cudaDeviceSynchronize(), "kernel");

  const bool same = equal("param", d_param, param) & equal("exp_avg", d_exp_avg, exp_avg) &
                    equal("exp_avg_sq", d_exp_avg_sq, exp_avg_sq) & equal("param_bf16", d_half, half);
  if (!same) {
    std::printf("DIFFERENT: numel %lld, shifts %lld %lld %lld %lld, bf16 %lld (%s)\n", static_cast<long long>(numel),
                static_cast<long long>(shifts.param), static_cast<long long>(shifts.grad),
                static_cast<long long>(shifts.exp_avg), static_cast<long long>(shifts.exp_avg_sq),
                static_cast<long long>(shifts.bf16), bf16 ? "written" : "absent");
  }
  return same;
}

/// More than 2^31 elements: the first and the last ones equal the reference, so that no index wrapped.
bool check_large() {
  const std::int64_t numel = (std::int64_t{1} << 31) + 5;
  constexpr std::int64_t kEdge = 1 << 20;
  DeviceArray<float> param(numel), grad(numel), exp_avg(numel), exp_avg_sq(numel);
  for (const auto* array : {&param, &grad, &exp_avg, &exp_avg_sq}) {
    check(cudaMemset(array->get(), 0, static_cast<std::size_t>(numel) * sizeof(float)), "cudaMemset");
  }
  const std::vector<float> weights = random_floats(kEdge, 1, 1, false, true);
  const std::vector<float> gradients = random_floats(kEdge, 2, 1e-2F, false, true);
  const auto bytes = static_cast<std::size_t>(kEdge) * sizeof(float);
  for (const std::int64_t begin : {std::int64_t{0}, numel - kEdge}) {
    check(cudaMemcpy(param.get() + begin, weights.data(), bytes, cudaMemcpyDefault), "copy");
    check(cudaMemcpy(grad.get() + begin, gradients.data(), bytes, cudaMemcpyDefault), "copy");
  }
  const AdamwStep step = adamw_step({}, 1);
  check(launch_adamw({param.get(), grad.get(), exp_avg.get(), exp_avg_sq.get(), nullptr, numel}, step, nullptr),
        "launch");
  check(cudaDeviceSynchronize(), "kernel");

  std::vector<float> want = weights, m(weights.size()), v(weights.size()), got(weights.size());
  adamw_ref({want.data(), gradients.data(), m.data(), v.data(), nullptr, kEdge}, step);
  bool same = true;
  for (const std::int64_t begin : {std::int64_t{0}, numel - kEdge}) {
    check(cudaMemcpy(got.data(), param.get() + begin, bytes, cudaMemcpyDefault), "copy");
    same = same && std::memcmp(got.data(), want.data(), bytes) == 0;
  }
  std::printf("numel 2^31 + 5: %s\n", same ? "same bits" : "DIFFERENT");
  return same;
}

/// Values of one magnitude, different everywhere: zeros would take the slow paths of division.
__global__ void fill(float* to, std::int64_t numel, float scale) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < numel) to[i] = scale * (1 + static_cast<float>(static_cast<std::uint32_t>(i) * 2654435761U) * 0x1p-32F);
}

/// Median seconds of `repeats` runs of `work` on the default stream, after three warm-ups.
template <class Work>
double median_seconds(Work work, int repeats) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> milliseconds;
  for (int i = -3; i < repeats; ++i) {
    check(cudaEventRecord(begin), "cudaEventRecord");
    work();
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaEventSynchronize(end), "kernel");
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, begin, end), "cudaEventElapsedTime");
    if (i >= 0) milliseconds.push_back(elapsed);
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  std::sort(milliseconds.begin(), milliseconds.end());
  return milliseconds[milliseconds.size() / 2] / 1e3;
}

/// Rates count bytes read and written: 28 an element, 30 with the bf16 copy, 2 x 4 GiB for the device-to-device copy.
void measure() {
  constexpr std::int64_t kNumel = std::int64_t{1} << 30;  // 4 GiB an array
  constexpr std::size_t kBytes = static_cast<std::size_t>(kNumel) * 4;
  DeviceArray<float> param(kNumel), grad(kNumel), exp_avg(kNumel), exp_avg_sq(kNumel);
  DeviceArray<std::uint16_t> half(kNumel);
  const auto fill_all = [](const DeviceArray<float>& array, float scale) {
    fill<<<kNumel / 1024, 1024>>>(array.get(), kNumel, scale);
    check(cudaGetLastError(), "fill");
  };
  fill_all(param, 0.02F), fill_all(grad, 1e-3F), fill_all(exp_avg, 1e-4F), fill_all(exp_avg_sq, 1e-7F);
  const double copy =
      2 * kBytes /
      median_seconds([&] { check(cudaMemcpyAsync(param.get(), grad.get(), kBytes, cudaMemcpyDeviceToDevice), "copy"); },
                     21);
  std::printf("copy of 4 GiB: %.1f GB/s read and written\n", copy / 1e9);
  for (const bool bf16 : {false, true}) {
    const AdamwStep step = adamw_step({}, 1);
    const AdamwArrays arrays{param.get(), grad.get(), exp_avg.get(), exp_avg_sq.get(), bf16 ? half.get() : nullptr,
                             kNumel};
    const double seconds = median_seconds([&] { check(launch_adamw(arrays, step, nullptr), "launch"); }, 21);
    const double rate = static_cast<double>(kNumel) / seconds;
    const double bytes = rate * (bf16 ? 30 : 28);
    std::printf("adamw%s: %.4g elements/s, %.1f GB/s, %.4f of the copy\n", bf16 ? " and bf16" : "", rate, bytes / 1e9,
                bytes / copy);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool large = argc > 1 && std::string_view(argv[1]) == "--large";
  bool same = true;
  int runs = 0;
  for (const std::int64_t numel : {0, 1, 2, 3, 4, 5, 7, 8, 31, 255, 1023, 1024, 1025, 4099, 1'000'003}) {
    for (const Shifts& shifts :
         {Shifts{0, 0, 0, 0, 0}, Shifts{1, 1, 1, 1, 1}, Shifts{2, 2, 2, 2, 2}, Shifts{3, 3, 3, 3, 3},
          Shifts{0, 1, 2, 3, 0}, Shifts{0, 0, 0, 0, 1}, Shifts{4, 0, 4, 0, 4}, Shifts{1, 1, 1, 1, 0}}) {
      for (const bool bf16 : {false, true}) {
        same &= check_run(numel, shifts, bf16);
        ++runs;
      }
    }
  }
  std::printf("%d runs: %s\n", runs, same ? "same bits" : "DIFFERENT");
  if (large) same &= check_large();
  if (!same) return 1;
  measure();
  return 0;
}
