// Integer sums over the bits of elements: the digest and the count of non-finite ones. A block adds its tile with one
// atomic; integer addition gives the same value in any order.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/digest.hpp"
#include "kernels/nonfinite.hpp"
#include "kernels/norm.hpp"
#include "kernels/plain_runs.cuh"
#include "kernels/run_table.cuh"
#include "kernels/sum.cuh"
#include "kernels/values.cuh"

namespace ebb::kernels {
namespace {

constexpr std::int64_t kTile = 8192;
using Sum = unsigned long long;  // what atomicAdd takes

template <Type kType, int kRuns>
__global__ void __launch_bounds__(kBlock)
    digest_kernel(const void* base, const __grid_constant__ RunTable<kPlainArrays, kRuns> table, std::uint64_t key,
                  Sum* digest) {
  const Tile tile = table.template find<kTile>(blockIdx.x);
  const auto index = static_cast<std::uint64_t>(table.offset[tile.run][kIndex]);
  Sum sum = 0;
  walk<kType, kTile>(table.at(base, tile.run, kOffset), tile, [&](std::int64_t i, std::uint32_t bits) {
    sum += digest_element(key, index + static_cast<std::uint64_t>(i), bits);
  });
  sum = block_sum<kBlock>(sum);
  if (threadIdx.x == 0) atomicAdd(digest, sum);
}

template <Type kType, int kRuns>
__global__ void __launch_bounds__(kBlock)
    nonfinite_kernel(const void* base, const __grid_constant__ RunTable<kPlainArrays, kRuns> table, std::uint32_t mask,
                     Sum* count) {
  const Tile tile = table.template find<kTile>(blockIdx.x);
  Sum sum = 0;
  walk<kType, kTile>(table.at(base, tile.run, kOffset), tile,
                     [&](std::int64_t, std::uint32_t bits) { sum += (bits & mask) == mask ? 1 : 0; });
  sum = block_sum<kBlock>(sum);
  if (threadIdx.x == 0 && sum != 0) atomicAdd(count, sum);
}

// Only the element's size matters: one type stands for all of its size.
template <class Launch>
int launch_size(Type type, Launch launch) {
  switch (bytes_of(type)) {
    case 1:
      return launch.template operator()<Type::fp8_e4m3>();
    case 2:
      return launch.template operator()<Type::bf16>();
    default:
      return launch.template operator()<Type::fp32>();
  }
}

}  // namespace

int launch_digest(Type type, const void* base, std::span<const Run> runs, std::uint64_t tag, std::uint64_t* digest,
                  void* stream) {
  if (!plain_runs_are_valid(runs)) return cudaErrorInvalidValue;
  auto* const sum = reinterpret_cast<Sum*>(digest);
  const auto on = static_cast<cudaStream_t>(stream);
  return launch_size(type, [&]<Type kType>() {
    return launch_runs(plain_entries(kType, base, runs), kTile,
                       [&]<int kRuns>(const RunTable<kPlainArrays, kRuns>& table, unsigned blocks) -> int {
                         return launch_kernel(digest_kernel<kType, kRuns>, blocks, on, base, table, mix64(tag), sum);
                       });
  });
}

int launch_count_nonfinite(Type type, const void* base, std::span<const Run> runs, std::uint64_t* count, void* stream) {
  if (!plain_runs_are_valid(runs)) return cudaErrorInvalidValue;
  auto* const sum = reinterpret_cast<Sum*>(count);
  const auto on = static_cast<cudaStream_t>(stream);
  return launch_size(type, [&]<Type kType>() {
    return launch_runs(plain_entries(kType, base, runs), kTile,
                       [&]<int kRuns>(const RunTable<kPlainArrays, kRuns>& table, unsigned blocks) -> int {
                         return launch_kernel(nonfinite_kernel<kType, kRuns>, blocks, on, base, table,
                                              nonfinite_mask(type), sum);
                       });
  });
}

}  // namespace ebb::kernels
