// Fills on the GPU: one byte everywhere, or random values. One run of bytes is the driver's own memset; several are one
// kernel, since a memset for each costs the host 1.5 us.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/elementwise.hpp"
#include "kernels/plain_runs.cuh"
#include "kernels/random_value.hpp"
#include "kernels/run_table.cuh"
#include "kernels/values.cuh"

namespace ebb::kernels {
namespace {

constexpr std::int64_t kTile = 2048;

// Bytes: vectors of 16, four a thread. Shifts are places of bytes in a vector here.
constexpr std::int64_t kByteWidth = 16;
constexpr std::int64_t kByteTile = 4 * kBlock * kByteWidth;

template <int kRuns>
__global__ void __launch_bounds__(kBlock)
    bytes_kernel(void* base, const __grid_constant__ RunTable<1, kRuns> table, std::uint32_t word) {
  const Tile tile = table.template find<kByteTile>(blockIdx.x);
  char* x = table.at(static_cast<char*>(base), tile.run, 0);
  const uint4 vector{word, word, word, word};
#pragma unroll
  for (std::int64_t i = tile.begin + threadIdx.x * kByteWidth; i < tile.begin + kByteTile; i += kBlock * kByteWidth) {
    if (tile.whole || (i >= 0 && i + kByteWidth <= tile.numel)) {
      *reinterpret_cast<uint4*>(x + i) = vector;
      continue;
    }
    for (std::int64_t k = i < 0 ? 0 : i; k < i + kByteWidth && k < tile.numel; ++k) x[k] = static_cast<char>(word);
  }
}

int launch_bytes(void* base, const std::vector<RunEntry<1>>& entries, std::uint8_t byte, cudaStream_t stream) {
  return launch_runs(entries, kByteTile, [&]<int kRuns>(const RunTable<1, kRuns>& table, unsigned blocks) -> int {
    return launch_kernel(bytes_kernel<kRuns>, blocks, stream, base, table, byte * 0x01010101U);
  });
}

// The four values from element e on; e need not begin a group of four.
__device__ void random_four(std::uint64_t seed, std::uint64_t e, float scale, float (&r)[4]) {
  const Philox here = random_group(seed, e / 4);
  if (e % 4 == 0) {
    for (int k = 0; k < 4; ++k) r[k] = random_value(lane_of(here, k), scale);
    return;
  }
  const Philox next = random_group(seed, e / 4 + 1);
  for (std::uint64_t k = 0; k < 4; ++k) {
    const std::uint64_t lane = e % 4 + k;
    r[k] = random_value(lane < 4 ? lane_of(here, lane) : lane_of(next, lane - 4), scale);
  }
}

template <Type kType, int kRuns>
__global__ void __launch_bounds__(kBlock)
    random_kernel(void* base, const __grid_constant__ RunTable<kPlainArrays, kRuns> table, std::uint64_t seed,
                  float scale) {
  const Tile tile = table.template find<kTile>(blockIdx.x);
  void* x = table.at(base, tile.run, kOffset);
  const std::int64_t index = table.offset[tile.run][kIndex];
  if (tile.whole) {
    for (std::int64_t i = tile.begin + threadIdx.x * kWidth; i < tile.begin + kTile; i += kBlock * kWidth) {
      float r[4];
      random_four(seed, static_cast<std::uint64_t>(index + i), scale, r);
      store<kType>(x, i, vector_of<kType>(r));
    }
    return;
  }
  for (std::int64_t i = tile.begin + threadIdx.x; i < tile.begin + kTile; i += kBlock) {
    if (i < 0 || i >= tile.numel) continue;
    const auto e = static_cast<std::uint64_t>(index + i);
    elements<kType>(x)[i] = Values<kType>::put(random_value(lane_of(random_group(seed, e / 4), e % 4), scale));
  }
}

template <Type kType>
int launch_random(void* base, std::span<const Run> runs, std::uint64_t seed, float scale, cudaStream_t stream) {
  return launch_runs(plain_entries(kType, base, runs), kTile,
                     [&]<int kRuns>(const RunTable<kPlainArrays, kRuns>& table, unsigned blocks) -> int {
                       return launch_kernel(random_kernel<kType, kRuns>, blocks, stream, base, table, seed, scale);
                     });
}

}  // namespace

int launch_fill_bytes(Type type, void* base, std::span<const Run> runs, std::uint8_t byte, void* stream) {
  std::vector<RunEntry<1>> entries;
  entries.reserve(runs.size());
  for (const Run& run : runs) {
    if (run.numel < 0) return cudaErrorInvalidValue;
    if (run.numel == 0) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(run.offset);
    entries.push_back({.offset = {run.offset},
                       .numel = run.numel * bytes_of(type),
                       .shift = static_cast<std::uint8_t>(address % kByteWidth)});
  }
  const auto on = static_cast<cudaStream_t>(stream);
  if (entries.size() != 1) return launch_bytes(base, entries, byte, on);
  return cudaMemsetAsync(static_cast<char*>(base) + entries[0].offset[0], byte,
                         static_cast<std::size_t>(entries[0].numel), on);
}

int launch_fill_random(Type type, void* base, std::span<const Run> runs, std::uint64_t seed, float scale,
                       void* stream) {
  if (!plain_runs_are_valid(runs)) return cudaErrorInvalidValue;
  const auto on = static_cast<cudaStream_t>(stream);
  if (type == Type::fp32) return launch_random<Type::fp32>(base, runs, seed, scale, on);
  if (type == Type::bf16) return launch_random<Type::bf16>(base, runs, seed, scale, on);
  return cudaErrorInvalidValue;
}

}  // namespace ebb::kernels
