// AdamW in all its types, fused and in passes, and what launches cost.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/digest.hpp"
#include "kernels/elementwise.hpp"
#include "tests/kernels/gpu/bench_cases.hpp"

namespace ebb::kernels::gpu {
namespace {

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

}  // namespace

void bench_adamw_all(Report& report, const Memory& m) {
  const Pieces small = pieces({kSmall}), large = pieces({kLarge}), shards = pieces(shard_sizes());
  fill_state(m, Type::fp32);
  AdamwArrays a = arrays_of(m, Type::fp32, Type::fp32, Type::fp32);
  for (const Pieces& p : {small, large, shards}) bench_adamw(report, "adamw fp32", a, p, adamw_runs(a, p));
  bench_adamw(report, "adamw fp32, shifted together", a, small, adamw_runs(a, small, 1));
  bench_adamw(report, "adamw fp32, shifted apart", a, small, adamw_runs(a, small, 1, true));
  bench_copy(report, m);
  a.param = m.param.get();
  for (const auto& [type, word] : {std::pair(Type::bf16, "bf16"), {Type::fp16, "fp16"}, {Type::fp8_e4m3, "fp8"}}) {
    a.param_type = type;
    for (const Pieces& p : {large, shards}) {
      bench_adamw(report, std::string("adamw fp32, param ") + word, a, p, adamw_runs(a, p));
    }
  }
  bench_copy(report, m);
  constexpr struct {
    const char* name;
    Type grad, exp_avg, exp_avg_sq;
  } kNarrow[] = {{"adamw, moments bf16", Type::fp32, Type::bf16, Type::bf16},
                 {"adamw, grad bf16", Type::bf16, Type::fp32, Type::fp32},
                 {"adamw, all bf16 but master", Type::bf16, Type::bf16, Type::bf16},
                 {"adamw, exp_avg bf16", Type::fp32, Type::bf16, Type::fp32},
                 {"adamw, exp_avg_sq bf16", Type::fp32, Type::fp32, Type::bf16}};
  for (const auto& types : kNarrow) {
    fill_state(m, types.grad);
    AdamwArrays narrow = arrays_of(m, types.grad, types.exp_avg, types.exp_avg_sq);
    bench_adamw(report, types.name, narrow, large, adamw_runs(narrow, large));
    narrow.param = m.param.get();
    for (const Pieces& p : {large, shards}) {
      bench_adamw(report, std::string(types.name) + ", param bf16", narrow, p, adamw_runs(narrow, p));
    }
    bench_copy(report, m);
  }
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

}  // namespace ebb::kernels::gpu
