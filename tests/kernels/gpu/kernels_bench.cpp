// Times every kernel against the bytes it must move and a device-to-device copy of 4 GiB in the same run.
//
//   kernels_bench [FILE]     FILE: the same as JSON lines. Needs about 24 GB of device memory; takes some seconds.
//
// Medians of CUDA-event times after three warm-ups; rates count bytes read and written. Four calls lie back to back
// between two events, of the kernels as of the copy: with one, the start and the end of a launch and the events
// themselves are 6 us of what is measured, 0.3 % of the shortest AdamW here; a step has its kernels back to back.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/digest.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/norm.hpp"
#include "kernels/objective.hpp"
#include "tests/kernels/gpu/bench_report.hpp"
#include "tests/kernels/gpu/device.hpp"

namespace ebb::kernels {
extern int adamw_variant;
}
namespace ebb::kernels::gpu {
namespace {

constexpr int adamw_variants[] = {1, 2, 4, 11, 12, 14};
constexpr std::int64_t kLarge = std::int64_t{1} << 30;
constexpr std::int64_t kSmall = std::int64_t{1} << 28;
constexpr int kRepeats = 15;
constexpr int kCalls = 4;  // back to back in a measurement

/// Five arrays of 2^30 fp32 elements and what else the kernels read and write.
struct Memory {
  DeviceBytes master{4 * kLarge + 64}, grad{4 * kLarge + 64}, exp_avg{4 * kLarge + 64}, exp_avg_sq{4 * kLarge + 64};
  DeviceBytes scratch{4 * kLarge + 64}, param{2 * kLarge + 64};
  DeviceBytes sums{1 << 24}, numbers{64};
};

/// Shards as a transformer's rank has them: a few of embeddings, many of matrices, more of norms; 64-element places.
std::vector<std::int64_t> shard_sizes() {
  std::vector<std::int64_t> sizes(4, 100'000'000);
  for (std::int64_t i = 0; i < 96; ++i) sizes.push_back(4'000'000 + i % 7 * 700'032);
  sizes.insert(sizes.end(), 190, 2048);
  std::mt19937 engine(1);
  for (std::size_t i = sizes.size() - 1; i > 0; --i) std::swap(sizes[i], sizes[engine() % (i + 1)]);
  return sizes;
}

struct Pieces {
  std::vector<std::int64_t> begins, sizes;
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::int64_t size : sizes) sum += size;
    return sum;
  }
  std::int64_t count() const { return static_cast<std::int64_t>(sizes.size()); }
};
Pieces pieces(const std::vector<std::int64_t>& sizes) {
  Pieces p{.begins = {}, .sizes = sizes};
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    p.begins.push_back(at);
    at += (size + 63) / 64 * 64;
  }
  return p;
}

std::vector<Run> runs_of(const Pieces& p, std::int64_t bytes) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < p.sizes.size(); ++i) {
    runs.push_back({.offset = p.begins[i] * bytes, .index = p.begins[i], .numel = p.sizes[i]});
  }
  return runs;
}

void fill_state(const Memory& m, Type grad_type) {
  const Run all{.numel = kLarge};
  check(launch_fill_random(Type::fp32, m.master.get(), {&all, 1}, 1, 0.02F, nullptr), "fill");
  check(launch_fill_random(grad_type, m.grad.get(), {&all, 1}, 2, 1e-3F, nullptr), "fill");
  check(launch_fill_bytes(Type::fp32, m.exp_avg.get(), {&all, 1}, 0, nullptr), "fill");
  check(launch_fill_bytes(Type::fp32, m.exp_avg_sq.get(), {&all, 1}, 0, nullptr), "fill");
}

AdamwArrays arrays_of(const Memory& m, Type grad, Type avg, Type sq) {
  return {.grad = m.grad.get(),
          .exp_avg = m.exp_avg.get(),
          .exp_avg_sq = m.exp_avg_sq.get(),
          .master = m.master.get(),
          .grad_type = grad,
          .exp_avg_type = avg,
          .exp_avg_sq_type = sq,
          .param_scale = 64};
}

// `shift` elements from each array's begin; arrays are shifted differently where `apart`.
std::vector<AdamwRun> adamw_runs(const AdamwArrays& a, const Pieces& p, std::int64_t shift = 0, bool apart = false) {
  std::vector<AdamwRun> runs;
  for (std::size_t i = 0; i < p.sizes.size(); ++i) {
    const std::int64_t at = p.begins[i] + shift;
    runs.push_back({.grad = at * bytes_of(a.grad_type),
                    .exp_avg = (at + (apart ? 1 : 0)) * bytes_of(a.exp_avg_type),
                    .exp_avg_sq = (at + (apart ? 2 : 0)) * bytes_of(a.exp_avg_sq_type),
                    .master = at * 4,
                    .param = at * bytes_of(a.param_type),
                    .numel = p.sizes[i]});
  }
  return runs;
}

void bench_adamw(Report& report, const std::string& name, const AdamwArrays& a, const Pieces& p,
                 const std::vector<AdamwRun>& runs) {
  const AdamwStep step = adamw_step({}, 10);
  const double seconds =
      median_seconds([&] { check(launch_adamw(a, runs, step, nullptr), "adamw"); }, kRepeats, kCalls);
  report.add({.name = name,
              .elements = p.total(),
              .runs = p.count(),
              .bytes = adamw_bytes(a) * p.total(),
              .seconds = seconds});
}

void bench_adamw_all(Report& report, const Memory& m) {
  const Pieces small = pieces({kSmall}), large = pieces({kLarge}), shards = pieces(shard_sizes());
  fill_state(m, Type::fp32);
  AdamwArrays a = arrays_of(m, Type::fp32, Type::fp32, Type::fp32);
  for (const int variant : adamw_variants) {
    adamw_variant = variant;
    const std::string v = " V" + std::to_string(variant);
    a.param = nullptr;
    bench_adamw(report, "adamw fp32" + v, a, small, adamw_runs(a, small));
    bench_adamw(report, "adamw fp32" + v, a, large, adamw_runs(a, large));
    bench_adamw(report, "adamw fp32" + v, a, shards, adamw_runs(a, shards));
    a.param = m.param.get();
    for (const auto& [type, word] : {std::pair(Type::bf16, "bf16"), {Type::fp8_e4m3, "fp8"}}) {
      a.param_type = type;
      bench_adamw(report, std::string("adamw fp32, param ") + word + v, a, large, adamw_runs(a, large));
      bench_adamw(report, std::string("adamw fp32, param ") + word + v, a, shards, adamw_runs(a, shards));
    }
  }
  a.param = nullptr;
  bench_adamw(report, "adamw fp32, shifted together", a, small, adamw_runs(a, small, 1));
  bench_adamw(report, "adamw fp32, shifted apart", a, small, adamw_runs(a, small, 1, true));
  for (const bool narrow_grad : {false, true}) {
    const Type grad = narrow_grad ? Type::bf16 : Type::fp32;
    for (const bool narrow_moments : {false, true}) {
      if (!narrow_grad && !narrow_moments) continue;
      const Type moments = narrow_moments ? Type::bf16 : Type::fp32;
      fill_state(m, grad);
      AdamwArrays mixed = arrays_of(m, grad, moments, moments);
      const std::string name =
          std::string("adamw") + (narrow_grad ? ", g bf16" : "") + (narrow_moments ? ", m bf16" : "");
      for (const int variant : adamw_variants) {
        adamw_variant = variant;
        const std::string v = " V" + std::to_string(variant);
        mixed.param = nullptr;
        bench_adamw(report, name + v, mixed, large, adamw_runs(mixed, large));
        mixed.param = m.param.get();
        bench_adamw(report, name + ", p bf16" + v, mixed, large, adamw_runs(mixed, large));
        bench_adamw(report, name + ", p bf16" + v, mixed, shards, adamw_runs(mixed, shards));
      }
    }
  }
  fill_state(m, Type::fp32);
  const AdamwArrays odd = arrays_of(m, Type::fp32, Type::bf16, Type::fp32);
  bench_adamw(report, "adamw, exp_avg bf16", odd, large, adamw_runs(odd, large));
}

void bench_foreach(Report& report, const Memory& m) {
  fill_state(m, Type::fp32);
  const AdamwArrays a = arrays_of(m, Type::fp32, Type::fp32, Type::fp32);
  const AdamwStep step = adamw_step({}, 10);
  for (const Pieces& p : {pieces({kSmall}), pieces(shard_sizes())}) {
    const auto runs = adamw_runs(a, p);
    const double seconds = median_seconds(
        [&] { check(launch_adamw_foreach(a, runs, step, m.scratch.get(), nullptr), "foreach"); }, kRepeats, kCalls);
    report.add({.name = "adamw in nine passes",
                .elements = p.total(),
                .runs = p.count(),
                .bytes = kAdamwForeachBytes * p.total(),
                .seconds = seconds});
  }
}

// Times `launch(type, runs)` for one run and for shards; `bytes` an element.
template <class Launch>
void bench_runs(Report& report, const std::string& name, Type type, std::int64_t bytes, Launch launch) {
  for (const Pieces& p : {pieces({kSmall}), pieces({kLarge}), pieces(shard_sizes())}) {
    const std::vector<Run> runs = runs_of(p, bytes_of(type));
    const double seconds = median_seconds([&] { check(launch(runs), name.c_str()); }, kRepeats, kCalls);
    report.add({.name = name + (type == Type::fp32 ? " fp32" : " bf16"),
                .elements = p.total(),
                .runs = p.count(),
                .bytes = bytes * p.total(),
                .seconds = seconds});
  }
}

void bench_reductions(Report& report, const Memory& m) {
  auto* const count = m.numbers.as<std::uint64_t>();
  auto* const number = reinterpret_cast<float*>(m.numbers.get() + 16);
  for (const Type type : {Type::fp32, Type::bf16}) {
    fill_state(m, type);
    bench_runs(report, "sum of squares", type, bytes_of(type), [&](const std::vector<Run>& runs) {
      return launch_sum_of_squares(type, m.grad.get(), runs, m.sums.get(), number, nullptr);
    });
    bench_runs(report, "count nonfinite", type, bytes_of(type), [&](const std::vector<Run>& runs) {
      return launch_count_nonfinite(type, m.grad.get(), runs, count, nullptr);
    });
    bench_runs(report, "digest", type, bytes_of(type), [&](const std::vector<Run>& runs) {
      return launch_digest(type, m.grad.get(), runs, 1, count, nullptr);
    });
    const float one = 1;
    copy(number, &one, 4);
    bench_runs(report, "scale", type, 2 * bytes_of(type),
               [&](const std::vector<Run>& runs) { return launch_scale(type, m.grad.get(), runs, number, nullptr); });
    bench_runs(report, "random fill", type, bytes_of(type), [&](const std::vector<Run>& runs) {
      return launch_fill_random(type, m.grad.get(), runs, 1, 1, nullptr);
    });
  }
}

void bench_casts(Report& report, const Memory& m) {
  fill_state(m, Type::fp32);
  const struct {
    const char* name;
    Type from, to;
  } casts[] = {{"cast fp32 to bf16", Type::fp32, Type::bf16},
               {"cast fp32 to fp16", Type::fp32, Type::fp16},
               {"cast fp32 to fp8", Type::fp32, Type::fp8_e4m3},
               {"cast bf16 to fp32", Type::bf16, Type::fp32}};
  for (const auto& cast : casts) {
    const bool widen = cast.from == Type::bf16;
    const CastArrays a{.source = widen ? m.param.get() : m.master.get(),
                       .destination = widen ? m.scratch.get() : m.param.get(),
                       .source_type = cast.from,
                       .destination_type = cast.to,
                       .scale = 64};
    for (const Pieces& p : {pieces({kLarge}), pieces(shard_sizes())}) {
      std::vector<CastRun> runs;
      for (std::size_t i = 0; i < p.sizes.size(); ++i) {
        runs.push_back({.source = p.begins[i] * bytes_of(cast.from),
                        .destination = p.begins[i] * bytes_of(cast.to),
                        .numel = p.sizes[i]});
      }
      const double seconds = median_seconds([&] { check(launch_cast(a, runs, nullptr), cast.name); }, kRepeats, kCalls);
      report.add({.name = cast.name,
                  .elements = p.total(),
                  .runs = p.count(),
                  .bytes = (bytes_of(cast.from) + bytes_of(cast.to)) * p.total(),
                  .seconds = seconds});
    }
  }
}

void bench_objective(Report& report, const Memory& m) {
  const Run all{.numel = kLarge};
  check(launch_fill_random(Type::bf16, m.param.get(), {&all, 1}, 1, 0.02F, nullptr), "fill");
  check(launch_fill_bytes(Type::fp32, m.grad.get(), {&all, 1}, 0, nullptr), "fill");
  const ObjectiveParams params{.data = m.param.get(), .numel = kLarge};
  const ObjectiveKey key{.seed = 1, .step = 1};
  auto* const loss = m.numbers.as<double>();
  report.add(
      {.name = "objective loss, bf16",
       .elements = kLarge,
       .bytes = 2 * kLarge,
       .seconds = median_seconds(
           [&] { check(launch_objective_loss(params, key, m.sums.get(), loss, nullptr), "loss"); }, kRepeats, kCalls)});
  for (const bool accumulate : {true, false}) {
    const ObjectiveGrads grads{.data = m.grad.get(), .accumulate = accumulate};
    report.add(
        {.name = accumulate ? "objective gradient, bf16, +=" : "objective gradient, bf16, =",
         .elements = kLarge,
         .bytes = (accumulate ? 10 : 6) * kLarge,
         .seconds = median_seconds([&] { check(launch_objective_gradient(params, key, grads, nullptr), "gradient"); },
                                   kRepeats, kCalls)});
  }
}

void bench_gemm(Report& report, const Memory& m) {
  const Run all{.numel = 8192 * 8192};
  check(launch_fill_random(Type::bf16, m.master.get(), {&all, 1}, 1, 1, nullptr), "fill");
  check(launch_fill_random(Type::bf16, m.grad.get(), {&all, 1}, 2, 1, nullptr), "fill");
  for (const std::int64_t size : {1024, 2048, 4096, 8192}) {
    const Gemm gemm{.a = m.master.get(), .b = m.grad.get(), .c = m.exp_avg.get(), .size = size};
    const double seconds = median_seconds([&] { check(launch_gemm(gemm, nullptr), "gemm"); }, 51, kCalls);
    report.add({.name = "gemm bf16 " + std::to_string(size),
                .elements = size * size,
                .bytes = gemm_bytes(size),
                .flops = gemm_flops(size),
                .seconds = seconds});
  }
}

/// Median seconds of host time of one `launch`: 16 in a row, with nothing else waiting on the device.
template <class Launch>
double host_seconds(Launch launch) {
  constexpr int kLaunches = 16;
  std::vector<double> seconds;
  for (int i = -3; i < kRepeats; ++i) {
    finish("host_seconds");
    const auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < kLaunches; ++k) launch();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (i >= 0) seconds.push_back(elapsed.count() / kLaunches);
  }
  finish("host_seconds");
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// What a launch costs where there is next to nothing to do, runs of one element: the device, and the host.
void bench_launches(Report& report, const Memory& m) {
  fill_state(m, Type::fp32);
  const AdamwArrays a = arrays_of(m, Type::fp32, Type::fp32, Type::fp32);
  const AdamwStep step = adamw_step({}, 10);
  for (const std::size_t count : {1U, 32U, 300U, 512U}) {
    const Pieces p = pieces(std::vector<std::int64_t>(count, 1));
    const std::vector<AdamwRun> runs = adamw_runs(a, p);
    const std::vector<Run> plain = runs_of(p, 4);
    bench_adamw(report, "adamw, runs of one element", a, p, runs);
    const auto add = [&](const char* name, double seconds) {
      report.add({.name = name, .elements = p.total(), .runs = p.count(), .seconds = seconds});
    };
    add("host time of launch_adamw", host_seconds([&] { check(launch_adamw(a, runs, step, nullptr), "adamw"); }));
    add("host time of launch_fill_bytes",
        host_seconds([&] { check(launch_fill_bytes(Type::fp32, a.exp_avg, plain, 0, nullptr), "fill"); }));
    add("host time of launch_digest", host_seconds([&] {
          check(launch_digest(Type::fp32, a.exp_avg, plain, 0, m.numbers.as<std::uint64_t>(), nullptr), "digest");
        }));
  }
}

double copy_rate(Report& report, const Memory& m) {
  constexpr std::int64_t kBytes = 4 * kLarge;
  const double seconds = median_seconds(
      [&] { check(cudaMemcpyAsync(m.scratch.get(), m.grad.get(), kBytes, cudaMemcpyDeviceToDevice, nullptr), "copy"); },
      kRepeats, kCalls);
  report.add({.name = "copy of 4 GiB", .elements = kLarge, .bytes = 2 * kBytes, .seconds = seconds});
  return 2 * static_cast<double>(kBytes) / seconds;
}

}  // namespace
}  // namespace ebb::kernels::gpu

int main(int argc, char** argv) {
  using namespace ebb::kernels::gpu;
  Report report(argc > 1 ? argv[1] : nullptr);
  cudaDeviceProp device{};
  int driver = 0, runtime = 0;
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  report.device(device.name, driver, runtime);
  const Memory memory;
  fill_state(memory, ebb::kernels::Type::fp32);
  report.baseline(copy_rate(report, memory));
  bench_adamw_all(report, memory);
  bench_foreach(report, memory);
  bench_reductions(report, memory);
  bench_casts(report, memory);
  bench_objective(report, memory);
  bench_gemm(report, memory);
  bench_launches(report, memory);
  copy_rate(report, memory);  // against the first: how far the device drifted
  return 0;
}
