// AdamW on the GPU: a block of 128 threads takes a tile of 1,024 elements, two vectors of four a thread, all read
// before the first is written.
//
// Measured on one H200 (driver 580.159, CUDA 13.0), read and written, in parts of a device-to-device copy of 4 GiB in
// the same run (4.24 TB/s), with the compiler's divisions and with those of quick_division.hpp; 290 runs are a
// transformer's shards, 9.8 10^8 elements:
//
//   gradients  moments  parameter   2^30 elements in one run   290 runs
//                                   compiler's   quick         compiler's   quick
//   fp32       fp32     -           1.001        0.996         0.999        0.994
//   fp32       fp32     bf16        0.988        0.985         0.987        0.984
//   bf16       fp32     bf16        0.979        0.976         0.978        0.976
//   fp32       bf16     -           1.004        1.011         -            -
//   fp32       bf16     bf16        0.991        0.993         0.989        0.992
//   bf16       bf16     -           0.975        0.996         -            -
//   bf16       bf16     bf16        0.977        0.978         0.974        0.977
//
// So kernels with a bf16 moment divide quickly; moments of two types lie between and were not measured so. With one
// vector a thread "bf16, bf16, bf16" has 0.958 and 0.933, with four the first line has 0.982 and 0.991. Blocks of 256
// and streaming loads were slower.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/adamw_math.cuh"
#include "kernels/adamw_runs.cuh"
#include "kernels/run_table.cuh"
#include "kernels/values.cuh"

namespace ebb::kernels {
namespace {

// The arrays of one run.
struct RunArrays {
  const void* grad;
  void* exp_avg;
  void* exp_avg_sq;
  void* master;
  void* param;  // null if there is none
};

// What a kernel is compiled for: types of the gradient and of the moments.
template <Type kGradType, Type kExpAvgType, Type kExpAvgSqType>
struct Kind {
  static constexpr Type kGrad = kGradType, kAvg = kExpAvgType, kSq = kExpAvgSqType;
  static constexpr bool kQuick = kAvg == Type::bf16 || kSq == Type::bf16;
  static constexpr int kFew = kAvg == kSq ? kFewRuns : kMaxRuns;  // moments of two types are rare
};
constexpr int kVectors = 2;  // a thread
constexpr std::int64_t kRow = kBlock * kWidth;
constexpr std::int64_t kTile = kRow * kVectors;

template <Type kParam>
__device__ void store_param(const RunArrays& a, std::int64_t i, const float (&p)[4], float scale) {
  float x[4];
  for (int k = 0; k < 4; ++k) x[k] = kParam == Type::fp8_e4m3 ? __fmul_rn(p[k], scale) : p[k];
  store<kParam>(a.param, i, vector_of<kParam>(x));
}

__device__ void store_param(const RunArrays& a, std::int64_t i, const float (&p)[4], const AdamwArrays& what) {
  if (a.param == nullptr) return;
  if (what.param_type == Type::bf16) {
    store_param<Type::bf16>(a, i, p, 1);
  } else if (what.param_type == Type::fp16) {
    store_param<Type::fp16>(a, i, p, 1);
  } else {
    store_param<Type::fp8_e4m3>(a, i, p, what.param_scale);
  }
}

// The thread's vectors, a row apart, the first at i.
template <class K>
__device__ void update_vectors(const RunArrays& a, std::int64_t i, const AdamwArrays& what, const AdamwStep& s,
                               const quick::Constants& constants) {
  Vector<K::kGrad> g4[kVectors];
  Vector<K::kAvg> m4[kVectors];
  Vector<K::kSq> v4[kVectors];
  Vector<Type::fp32> p4[kVectors];
#pragma unroll
  for (int n = 0; n < kVectors; ++n) {
    const std::int64_t at = i + n * kRow;
    g4[n] = load<K::kGrad>(a.grad, at);
    m4[n] = load<K::kAvg>(a.exp_avg, at);
    v4[n] = load<K::kSq>(a.exp_avg_sq, at);
    p4[n] = load<Type::fp32>(a.master, at);
  }
#pragma unroll
  for (int n = 0; n < kVectors; ++n) {
    const std::int64_t at = i + n * kRow;
    float g[4], m[4], v[4], p[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      g[k] = element<K::kGrad>(g4[n], k);
      m[k] = element<K::kAvg>(m4[n], k);
      v[k] = element<K::kSq>(v4[n], k);
      p[k] = element<Type::fp32>(p4[n], k);
    }
    if constexpr (K::kQuick) {
      adamw_update_quickly(p, g, m, v, s, constants);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) adamw_update(p[k], g[k], m[k], v[k], s);
    }
    store<Type::fp32>(a.master, at, vector_of<Type::fp32>(p));
    store<K::kAvg>(a.exp_avg, at, vector_of<K::kAvg>(m));
    store<K::kSq>(a.exp_avg_sq, at, vector_of<K::kSq>(v));
    store_param(a, at, p, what);
  }
}

template <Type kType>
__device__ float get(const void* base, std::int64_t i) {
  return Values<kType>::get(elements<kType>(base)[i]);
}
template <Type kType>
__device__ void put(void* base, std::int64_t i, float x) {
  elements<kType>(base)[i] = Values<kType>::put(x);
}
__device__ void put_param(const RunArrays& a, std::int64_t i, float p, const AdamwArrays& what) {
  if (a.param == nullptr) return;
  if (what.param_type == Type::bf16) {
    put<Type::bf16>(a.param, i, p);
  } else if (what.param_type == Type::fp16) {
    put<Type::fp16>(a.param, i, p);
  } else {
    put<Type::fp8_e4m3>(a.param, i, __fmul_rn(p, what.param_scale));
  }
}

// Elements of a tile that is clipped or not aligned: four of them a thread, kBlock apart, the first at i, as far as
// they lie in the run's `numel`; all are read before one is written.
template <class K>
__device__ void update_elements(const RunArrays& a, std::int64_t i, std::int64_t numel, const AdamwArrays& what,
                                const AdamwStep& s) {
  float g[4], m[4], v[4], p[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::int64_t at = i + k * kBlock;
    if (at < 0 || at >= numel) continue;
    g[k] = get<K::kGrad>(a.grad, at);
    m[k] = get<K::kAvg>(a.exp_avg, at);
    v[k] = get<K::kSq>(a.exp_avg_sq, at);
    p[k] = get<Type::fp32>(a.master, at);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::int64_t at = i + k * kBlock;
    if (at < 0 || at >= numel) continue;
    adamw_update(p[k], g[k], m[k], v[k], s);
    put<Type::fp32>(a.master, at, p[k]);
    put<K::kAvg>(a.exp_avg, at, m[k]);
    put<K::kSq>(a.exp_avg_sq, at, v[k]);
    put_param(a, at, p[k], what);
  }
}

template <class K, int kRuns>
__global__ void __launch_bounds__(kBlock)
    adamw_kernel(const __grid_constant__ AdamwArrays what, const __grid_constant__ AdamwStep step,
                 const __grid_constant__ quick::Constants constants,
                 const __grid_constant__ RunTable<kAdamwArrays, kRuns> table) {
  const Tile tile = table.template find<kTile>(blockIdx.x);
  const RunArrays a{.grad = table.at(what.grad, tile.run, kGrad),
                    .exp_avg = table.at(what.exp_avg, tile.run, kExpAvg),
                    .exp_avg_sq = table.at(what.exp_avg_sq, tile.run, kExpAvgSq),
                    .master = table.at(what.master, tile.run, kMaster),
                    .param = what.param == nullptr ? nullptr : table.at(what.param, tile.run, kFifth)};
  if (tile.whole) {
    update_vectors<K>(a, tile.begin + threadIdx.x * kWidth, what, step, constants);
    return;
  }
#pragma unroll 1
  for (int n = 0; n < kVectors; ++n) {
    update_elements<K>(a, tile.begin + n * kRow + threadIdx.x, tile.numel, what, step);
  }
}

template <class K>
int launch_kind(const AdamwArrays& arrays, const std::vector<RunEntry<kAdamwArrays>>& entries, const AdamwStep& step,
                cudaStream_t stream) {
  return launch_runs<K::kFew>(
      entries, kTile, [&]<int kRuns>(const RunTable<kAdamwArrays, kRuns>& table, unsigned blocks) -> int {
        return launch_kernel(adamw_kernel<K, kRuns>, blocks, stream, arrays, step, quick::constants(step), table);
      });
}

// Turns the arrays' types, one after the other, into those of a kernel.
template <Type... kTypes>
int launch_types(const AdamwArrays& arrays, const std::vector<RunEntry<kAdamwArrays>>& entries, const AdamwStep& step,
                 cudaStream_t stream) {
  constexpr int kKnown = sizeof...(kTypes);
  if constexpr (kKnown == 3) {
    return launch_kind<Kind<kTypes...>>(arrays, entries, step, stream);
  } else {
    const Type next = kKnown == 0 ? arrays.grad_type : kKnown == 1 ? arrays.exp_avg_type : arrays.exp_avg_sq_type;
    return next == Type::bf16 ? launch_types<kTypes..., Type::bf16>(arrays, entries, step, stream)
                              : launch_types<kTypes..., Type::fp32>(arrays, entries, step, stream);
  }
}

}  // namespace

int launch_adamw(const AdamwArrays& arrays, std::span<const AdamwRun> runs, const AdamwStep& step, void* stream) {
  if (!adamw_knows(arrays)) return cudaErrorInvalidValue;
  std::vector<RunEntry<kAdamwArrays>> entries;
  entries.reserve(runs.size());
  for (const AdamwRun& run : runs) {
    if (run.numel < 0) return cudaErrorInvalidValue;
    if (run.numel == 0) continue;
    RunEntry<kAdamwArrays> entry = adamw_entry(arrays, run);
    if (arrays.param != nullptr) {
      entry.offset[kFifth] = run.param;
      entry.shift = common_shift(entry.shift, shift_of(arrays.param, run.param, bytes_of(arrays.param_type)));
    }
    entries.push_back(entry);
  }
  return launch_types<>(arrays, entries, step, static_cast<cudaStream_t>(stream));
}

}  // namespace ebb::kernels
