// Times every kernel against the bytes it must move and device-to-device copies of 4 GiB shortly before and after it.
//
//   kernels_bench [FILE]     FILE: the same as JSON lines. Needs about 24 GB of device memory; takes some seconds.
//
// Medians of CUDA-event times after three warm-ups; rates count bytes read and written. Four calls lie back to back
// between two events, of the kernels as of the copy: with one, the start and the end of a launch and the events
// themselves are 6 us of what is measured, 0.3 % of the shortest AdamW here; a step has its kernels back to back.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/digest.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/norm.hpp"
#include "kernels/objective.hpp"
#include "tests/kernels/gpu/bench_cases.hpp"
#include "tests/kernels/gpu/bench_report.hpp"
#include "tests/kernels/gpu/device.hpp"

namespace ebb::kernels::gpu {
namespace {

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

}  // namespace

void bench_copy(Report& report, const Memory& m) {
  constexpr std::int64_t kBytes = 4 * kLarge;
  const double seconds = median_seconds(
      [&] {
        check(cudaMemcpyAsync(m.scratch.get(), m.master.get(), kBytes, cudaMemcpyDeviceToDevice, nullptr), "copy");
      },
      kRepeats, kCalls);
  report.add_copy({.name = "copy of 4 GiB", .elements = kLarge, .bytes = 2 * kBytes, .seconds = seconds});
}

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
  bench_copy(report, memory);
  bench_adamw_all(report, memory);
  for (const auto bench :
       {bench_foreach, bench_reductions, bench_casts, bench_quantize, bench_objective, bench_gemm, bench_launches}) {
    bench(report, memory);
    bench_copy(report, memory);
  }
  return 0;
}
