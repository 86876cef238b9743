// The objective on the GPU. A thread takes groups of four elements that share a draw; where the array's vectors do not
// begin at multiples of four in the index, it reads and writes them one by one.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/objective.hpp"
#include "kernels/random_value.hpp"
#include "kernels/run_table.cuh"
#include "kernels/sum.cuh"
#include "kernels/values.cuh"

namespace ebb::kernels {
namespace {

constexpr std::int64_t kRow = kBlock * kWidth;
constexpr int kLossRows = kSumTile / kRow;
constexpr int kGradientRows = 4;
static_assert(kRow == kSumLanes);

// Four elements of an array from element `e` on (a multiple of four); those outside [begin, end) stay as they are.
template <Type kType>
struct Group {
  Bits<kType> bits[4];

  // `data` is the address of element p.begin; `vectors` whether multiples of four are aligned.
  __device__ void read(const void* data, std::int64_t e, const ObjectiveParams& p, bool vectors) {
    if (vectors && e >= p.begin && e + 4 <= p.begin + p.numel) {
      const Vector<kType> v = load<kType>(data, e - p.begin);
#pragma unroll
      for (int k = 0; k < 4; ++k) bits[k] = element_bits(v, k);
      return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t i = e + k - p.begin;
      bits[k] = i >= 0 && i < p.numel ? elements<kType>(data)[i] : Bits<kType>{0};
    }
  }

  __device__ void write(void* data, std::int64_t e, const ObjectiveParams& p, bool vectors) const {
    if (vectors && e >= p.begin && e + 4 <= p.begin + p.numel) {
      Vector<kType> v;
      pack(v, bits);
      store<kType>(data, e - p.begin, v);
      return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t i = e + k - p.begin;
      if (i >= 0 && i < p.numel) elements<kType>(data)[i] = bits[k];
    }
  }
};

// d and n of objective.hpp.
struct Terms {
  float d, n;
};
__device__ Terms terms(float p, std::uint32_t target, std::uint32_t noise) {
  return {.d = __fsub_rn(p, uniform_pm1(target)), .n = __fmul_rn(kObjectiveB, uniform_pm1(noise))};
}

template <Type kType>
__global__ void __launch_bounds__(kBlock)
    loss_kernel(const ObjectiveParams p, const ObjectiveKey key, bool vectors, double* tiles) {
  const std::int64_t tile = p.begin / kSumTile + blockIdx.x;
  double lanes[4] = {};
  for (int row = 0; row < kLossRows; ++row) {
    const std::int64_t e = tile * kSumTile + row * kRow + threadIdx.x * kWidth;
    Group<kType> group;
    group.read(p.data, e, p, vectors);
    const Philox target = target_group(key, static_cast<std::uint64_t>(e / 4));
    const Philox noise = noise_group(key, static_cast<std::uint64_t>(e / 4));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (e + k < p.begin || e + k >= p.begin + p.numel) continue;
      const float x = Values<kType>::get(group.bits[k]);
      const Terms t = terms(x, lane_of(target, k), lane_of(noise, k));
      const float square = __fmul_rn(__fmul_rn(0.5F * kObjectiveA, t.d), t.d);
      lanes[k] = __dadd_rn(lanes[k], static_cast<double>(__fadd_rn(square, __fmul_rn(t.n, x))));
    }
  }
  const double sum = block_sum<kBlock>(__dadd_rn(__dadd_rn(lanes[0], lanes[1]), __dadd_rn(lanes[2], lanes[3])));
  if (threadIdx.x == 0) tiles[blockIdx.x] = sum;
}

template <Type kType, Type kGradType>
__global__ void __launch_bounds__(kBlock)
    gradient_kernel(const ObjectiveParams p, const ObjectiveKey key, const ObjectiveGrads grads, bool vectors) {
  const std::int64_t first = p.begin / 4 * 4 + blockIdx.x * (kRow * kGradientRows) + threadIdx.x * kWidth;
  Group<kType> params[kGradientRows];
  Group<kGradType> sums[kGradientRows];
#pragma unroll
  for (int row = 0; row < kGradientRows; ++row) {
    params[row].read(p.data, first + row * kRow, p, vectors);
    if (grads.accumulate) sums[row].read(grads.data, first + row * kRow, p, vectors);
  }
#pragma unroll
  for (int row = 0; row < kGradientRows; ++row) {
    const std::int64_t e = first + row * kRow;
    const Philox target = target_group(key, static_cast<std::uint64_t>(e / 4));
    const Philox noise = noise_group(key, static_cast<std::uint64_t>(e / 4));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const Terms t = terms(Values<kType>::get(params[row].bits[k]), lane_of(target, k), lane_of(noise, k));
      const float gradient = __fmul_rn(grads.scale, __fadd_rn(__fmul_rn(kObjectiveA, t.d), t.n));
      sums[row].bits[k] = Values<kGradType>::put(
          grads.accumulate ? __fadd_rn(Values<kGradType>::get(sums[row].bits[k]), gradient) : gradient);
    }
    sums[row].write(grads.data, e, p, vectors);
  }
}

bool aligned_to_index(const void* data, Type type, std::int64_t begin) {
  return shift_of(data, 0, bytes_of(type)) == begin % kWidth;
}

template <class Launch>
int launch_param_type(Type type, Launch launch) {
  switch (type) {
    case Type::fp32:
      return launch.template operator()<Type::fp32>();
    case Type::bf16:
      return launch.template operator()<Type::bf16>();
    case Type::fp16:
      return launch.template operator()<Type::fp16>();
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

int launch_objective_tiles(const ObjectiveParams& params, const ObjectiveKey& key, double* tiles, void* stream) {
  if (params.begin < 0 || params.numel < 0) return cudaErrorInvalidValue;
  const auto on = static_cast<cudaStream_t>(stream);
  const std::int64_t blocks =
      objective_workspace(params.begin, params.numel) / static_cast<std::int64_t>(sizeof(double));
  if (blocks > INT32_MAX) return cudaErrorInvalidValue;
  const bool vectors = aligned_to_index(params.data, params.type, params.begin);
  return launch_param_type(params.type, [&]<Type kType>() -> int {
    if (blocks == 0) return cudaSuccess;
    loss_kernel<kType><<<static_cast<unsigned>(blocks), kBlock, 0, on>>>(params, key, vectors, tiles);
    return cudaGetLastError();
  });
}

int launch_objective_total(const double* tiles, std::int64_t count, double* loss, void* stream) {
  if (count < 0 || count > INT32_MAX) return cudaErrorInvalidValue;
  return launch_final_sum(tiles, count, nullptr, loss, static_cast<cudaStream_t>(stream));
}

int launch_objective_loss(const ObjectiveParams& params, const ObjectiveKey& key, void* workspace, double* loss,
                          void* stream) {
  auto* const tiles = static_cast<double*>(workspace);
  const int code = launch_objective_tiles(params, key, tiles, stream);
  if (code != cudaSuccess) return code;
  const std::int64_t count =
      objective_workspace(params.begin, params.numel) / static_cast<std::int64_t>(sizeof(double));
  return launch_objective_total(tiles, count, loss, stream);
}

int launch_objective_gradient(const ObjectiveParams& params, const ObjectiveKey& key, const ObjectiveGrads& grads,
                              void* stream) {
  if (params.begin < 0 || params.numel < 0) return cudaErrorInvalidValue;
  if (grads.type != Type::fp32 && grads.type != Type::bf16) return cudaErrorInvalidValue;
  if (params.numel == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  constexpr std::int64_t kElements = kRow * kGradientRows;
  const std::int64_t blocks = (params.begin % 4 + params.numel + kElements - 1) / kElements;
  if (blocks > INT32_MAX) return cudaErrorInvalidValue;
  const bool vectors = aligned_to_index(params.data, params.type, params.begin) &&
                       aligned_to_index(grads.data, grads.type, params.begin);
  return launch_param_type(params.type, [&]<Type kType>() -> int {
    const auto grid = static_cast<unsigned>(blocks);
    if (grads.type == Type::bf16) {
      gradient_kernel<kType, Type::bf16><<<grid, kBlock, 0, on>>>(params, key, grads, vectors);
    } else {
      gradient_kernel<kType, Type::fp32><<<grid, kBlock, 0, on>>>(params, key, grads, vectors);
    }
    return cudaGetLastError();
  });
}

}  // namespace ebb::kernels
