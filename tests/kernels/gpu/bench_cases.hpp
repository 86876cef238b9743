// What the benchmarks work on: memory, runs as a rank of a training has them, and how often each is timed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/elementwise.hpp"
#include "kernels/runs.hpp"
#include "kernels/types.hpp"
#include "tests/kernels/gpu/bench_report.hpp"
#include "tests/kernels/gpu/device.hpp"

namespace ebb::kernels::gpu {

inline constexpr std::int64_t kLarge = std::int64_t{1} << 30;
inline constexpr std::int64_t kSmall = std::int64_t{1} << 28;
inline constexpr int kRepeats = 15;
inline constexpr int kCalls = 4;  // back to back in a measurement

/// Five arrays of 2^30 fp32 elements and what else the kernels read and write.
struct Memory {
  DeviceBytes master{4 * kLarge + 64}, grad{4 * kLarge + 64}, exp_avg{4 * kLarge + 64}, exp_avg_sq{4 * kLarge + 64};
  DeviceBytes scratch{4 * kLarge + 64}, param{2 * kLarge + 64};
  DeviceBytes sums{1 << 24}, numbers{64};
};

/// Shards as a transformer's rank has them: a few of embeddings, many of matrices, more of norms; 64-element places.
inline std::vector<std::int64_t> shard_sizes() {
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
inline Pieces pieces(const std::vector<std::int64_t>& sizes) {
  Pieces p{.begins = {}, .sizes = sizes};
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    p.begins.push_back(at);
    at += (size + 63) / 64 * 64;
  }
  return p;
}

inline std::vector<Run> runs_of(const Pieces& p, std::int64_t bytes) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < p.sizes.size(); ++i) {
    runs.push_back({.offset = p.begins[i] * bytes, .index = p.begins[i], .numel = p.sizes[i]});
  }
  return runs;
}

inline void fill_state(const Memory& m, Type grad_type) {
  const Run all{.numel = kLarge};
  check(launch_fill_random(Type::fp32, m.master.get(), {&all, 1}, 1, 0.02F, nullptr), "fill");
  check(launch_fill_random(grad_type, m.grad.get(), {&all, 1}, 2, 1e-3F, nullptr), "fill");
  check(launch_fill_bytes(Type::fp32, m.exp_avg.get(), {&all, 1}, 0, nullptr), "fill");
  check(launch_fill_bytes(Type::fp32, m.exp_avg_sq.get(), {&all, 1}, 0, nullptr), "fill");
}

// kernels_bench.cpp
void bench_copy(Report& report, const Memory& m);

// bench_adamw.cpp; the first makes its own copies, the last one at its end.
void bench_adamw_all(Report& report, const Memory& m);
void bench_foreach(Report& report, const Memory& m);
void bench_launches(Report& report, const Memory& m);

// bench_quantize.cpp
void bench_quantize(Report& report, const Memory& m);

}  // namespace ebb::kernels::gpu
