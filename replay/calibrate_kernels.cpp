// Kernels: those that replay runs, at sizes beyond the L2 cache or walking through more than it holds.
//
// Moments and gradients come from real steps: after a few updates of random gradients exp_avg_sq is what a training
// has.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/norm.hpp"
#include "replay/calibrate_bench.hpp"

namespace ebb::replay {
namespace {

using kernels::Type;

// Arrays of the block (an eighth each).
enum : int { kMasterArray, kGradArray, kExpAvgArray, kExpAvgSqArray, kScratchArray, kParamArray, kWorkArray };

class KernelBench {
 public:
  KernelBench(Bench& bench, CalibrationData& data)
      : bench_(bench), data_(data), gpu_(bench.gpu(0)), numel_(gpu_.numel()) {}

  void run();

 private:
  void* stream() const { return gpu_.compute.get(); }
  kernels::AdamwArrays arrays(bool param) const;
  /// `pieces` runs of `numel` elements in all, the `i`-th part of the arrays.
  std::vector<kernels::AdamwRun> runs(std::int64_t numel, std::int64_t pieces, int i) const;
  void prepare();
  void add(const char* what, std::int64_t bytes, int calls, const std::function<void(int)>& enqueue) {
    data_.kernels.push_back({.what = what, .bytes = {bytes}, .each = bench_.timed_burst(stream(), calls, enqueue)});
  }
  void adam(const char* what, std::int64_t numel, std::int64_t pieces, bool param);
  void adam_foreach(std::int64_t numel, std::int64_t pieces);
  void memory_bound(std::int64_t numel);
  void device_copy();
  void adam_beside_copies();

  Bench& bench_;
  CalibrationData& data_;
  const BenchGpu& gpu_;
  std::int64_t numel_;
  kernels::AdamwStep step_ = kernels::adamw_step({.learning_rate = 1e-5F}, 1000);
};

kernels::AdamwArrays KernelBench::arrays(bool param) const {
  return {.grad = gpu_.array(kGradArray),
          .exp_avg = gpu_.array(kExpAvgArray),
          .exp_avg_sq = gpu_.array(kExpAvgSqArray),
          .master = gpu_.array(kMasterArray),
          .param = param ? gpu_.array(kParamArray) : nullptr};
}

std::vector<kernels::AdamwRun> KernelBench::runs(std::int64_t numel, std::int64_t pieces, int i) const {
  const std::int64_t places = numel_ / numel;
  const std::int64_t first = i % places * numel;
  std::vector<kernels::AdamwRun> list;
  for (std::int64_t p = 0; p < pieces; ++p) {
    const std::int64_t begin = first + numel * p / pieces / 64 * 64;
    const std::int64_t end = p + 1 == pieces ? first + numel : first + numel * (p + 1) / pieces / 64 * 64;
    list.push_back({.grad = 4 * begin,
                    .exp_avg = 4 * begin,
                    .exp_avg_sq = 4 * begin,
                    .master = 4 * begin,
                    .param = 2 * begin,
                    .numel = end - begin});
  }
  return list;
}

/// Moments that a training could have: zero, then a few steps with one gradient.
void KernelBench::prepare() {
  const kernels::Run all{.offset = 0, .index = 0, .numel = numel_};
  for (const int moment : {kExpAvgArray, kExpAvgSqArray})
    check(kernels::launch_fill_bytes(Type::fp32, gpu_.array(moment), {&all, 1}, 0, stream()), "launch_fill_bytes");
  for (const int random : {kMasterArray, kGradArray})
    check(kernels::launch_fill_random(Type::fp32, gpu_.array(random), {&all, 1}, 7, 1e-2F, stream()),
          "launch_fill_random");
  for (int i = 0; i < 3; ++i)
    check(kernels::launch_adamw(arrays(false), runs(numel_, 1, 0), step_, stream()), "launch_adamw");
  synchronize(stream());
}

void KernelBench::adam(const char* what, std::int64_t numel, std::int64_t pieces, bool param) {
  const auto calls = static_cast<int>(std::clamp<std::int64_t>(numel_ / numel, 4, 32));
  add(what, kernels::adamw_bytes(arrays(param)) * numel, calls, [&](int i) {
    check(kernels::launch_adamw(arrays(param), runs(numel, pieces, i), step_, stream()), "launch_adamw");
  });
}

void KernelBench::adam_foreach(std::int64_t numel, std::int64_t pieces) {
  const auto calls = static_cast<int>(std::clamp<std::int64_t>(numel_ / numel, 2, 8));
  // Plans count the bytes of the fused kernel.
  add("adam_foreach", kernels::adamw_bytes(arrays(false)) * numel, calls, [&](int i) {
    check(kernels::launch_adamw_foreach(arrays(false), runs(numel, pieces, i), step_, gpu_.array(kScratchArray),
                                        stream()),
          "launch_adamw_foreach");
  });
}

void KernelBench::memory_bound(std::int64_t numel) {
  const kernels::Run run{.offset = 0, .index = 0, .numel = numel};
  const kernels::CastRun cast{.source = 0, .destination = 0, .numel = numel};
  float* const grads = gpu_.array(kGradArray);
  float* const number = gpu_.array(kWorkArray);
  void* const workspace = number + 64;
  constexpr int kCalls = 4;
  add("norm", 4 * numel, kCalls, [&](int) {
    check(kernels::launch_sum_of_squares(Type::fp32, grads, {&run, 1}, workspace, number, stream()),
          "launch_sum_of_squares");
  });
  const kernels::Clip clip{.sum = number, .norm = number + 1, .coefficient = number + 2, .nonfinite = nullptr};
  // A bound that no norm reaches: the gradients stay.
  check(kernels::launch_clip_coefficient(clip, 1e30F, stream()), "launch_clip_coefficient");
  add("scale", 8 * numel, kCalls, [&](int) {
    check(kernels::launch_scale(Type::fp32, grads, {&run, 1}, number + 2, stream()), "launch_scale");
  });
  const kernels::CastArrays arrays{.source = gpu_.array(kMasterArray), .destination = gpu_.array(kParamArray)};
  add("cast", 6 * numel, kCalls, [&](int) {
    check(kernels::launch_cast(arrays, {&cast, 1}, stream()), "launch_cast");
  });
  add("zero", 4 * numel, kCalls, [&](int) {
    check(kernels::launch_fill_bytes(Type::fp32, gpu_.array(kScratchArray), {&run, 1}, 0, stream()),
          "launch_fill_bytes");
  });
}

void KernelBench::device_copy() {
  const std::int64_t half = gpu_.block_bytes.value / 2;
  add("copy", 2 * half, 2, [&](int) {
    check(cudaMemcpyAsync(gpu_.at({half}), gpu_.at({0}), static_cast<std::size_t>(half), cudaMemcpyDeviceToDevice,
                          static_cast<cudaStream_t>(stream())),
          "cudaMemcpyAsync");
  });
}

/// Copies both ways long before and after; they use the arrays behind those of AdamW.
void KernelBench::adam_beside_copies() {
  const Bytes bytes = 64_MiB;
  if (8 * bytes.value > numel_ * 4) return;
  // About 1.9 ms an AdamW of 2^28 elements, 1.2 ms or more a copy.
  constexpr int kCalls = 16;
  std::vector<double> each;
  const auto copy = [&](bool to_device, int i) {
    // AdamW does not touch the scratch array.
    const std::int64_t slot = (i % 2 + (to_device ? 0 : 2)) * bytes.value;
    std::byte* device = reinterpret_cast<std::byte*>(gpu_.array(kScratchArray)) + slot;
    std::byte* host = gpu_.host->pinned() + i % (gpu_.host->pinned_bytes().value / bytes.value) * bytes.value;
    check(cudaMemcpyAsync(to_device ? device : host, to_device ? host : device, static_cast<std::size_t>(bytes.value),
                          to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                          static_cast<cudaStream_t>(to_device ? gpu_.in.get() : gpu_.out.get())),
          "cudaMemcpyAsync");
  };
  for (int repeat = 0; repeat <= bench_.repeats(); ++repeat) {
    const Event copies_begin = make_event(true);
    const Event copies_end = make_event(true);
    const Event begin = make_event(true);
    const Event end = make_event(true);
    const int step = bench_.next_step();
    for (void* s : {gpu_.in.get(), gpu_.out.get(), stream()}) bench_.gate().hold(step, s);
    for (int i = 0; i < 2 * kCalls; ++i) {
      copy(true, i);
      copy(false, i);
      if (i == 0) record(copies_begin, gpu_.in.get());
    }
    record(copies_end, gpu_.in.get());
    // The first ones run while copies get going.
    for (int i = 0; i < kCalls; ++i) {
      if (i == 2) record(begin, stream());
      check(kernels::launch_adamw(arrays(false), runs(numel_, 1, 0), step_, stream()), "launch_adamw");
    }
    record(end, stream());
    bench_.gate().open(step);
    for (void* s : {gpu_.in.get(), gpu_.out.get(), stream()}) synchronize(s);
    const bool beside = elapsed_ms(copies_begin, begin) > 0 && elapsed_ms(end, copies_end) > 0;
    if (repeat > 0 && beside) each.push_back(static_cast<double>(elapsed_ms(begin, end)) / 1e3 / (kCalls - 2));
  }
  if (!each.empty())
    data_.kernels.push_back({.what = "adam_beside",
                             .bytes = {kernels::adamw_bytes(arrays(false)) * numel_},
                             .each = timed(std::move(each))});
}

void KernelBench::run() {
  prepare();
  const std::int64_t slot = std::min<std::int64_t>(numel_, std::int64_t{1} << 22);
  for (const std::int64_t numel : {slot, std::min(numel_, slot * 16), numel_}) {
    adam("adam", numel, 1, false);
    adam("adam_bf16", numel, 1, true);
  }
  adam("adam_runs", numel_, 300, false);
  adam_foreach(std::min(numel_, slot * 16), 32);
  adam_foreach(numel_, 1);
  memory_bound(numel_);
  device_copy();
  prepare();
  adam_beside_copies();
}

}  // namespace

void measure_kernels(Bench& bench, CalibrationData& data) {
  bench.say("kernels");
  set_device(bench.gpu(0).device);
  KernelBench(bench, data).run();
}

}  // namespace ebb::replay
