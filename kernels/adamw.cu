// AdamW on the GPU: one vector of four elements of each array per thread, blocks of 128. Measured on one H200 (driver
// 580.159, CUDA 13.0, one run of 2^30 fp32 elements): 4.26 TB/s read and written, as much as a device-to-device copy of
// 4 GiB; 4.25 with blocks of 256, 4.13 with 512, 4.10 with streaming loads. Zeros take the divisions' slow path:
// all-zero state runs at 4.11.
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

// Types that a kernel learns at its launch: wide enough for either, the types are asked again where it is used.
template <bool kFixed, Type kType>
struct Four {
  Vector<kFixed ? kType : Type::fp32> v;

  __device__ void load(Type type, const void* base, std::int64_t i) {
    if constexpr (kFixed) {
      v = kernels::load<kType>(base, i);
    } else if (type == Type::bf16) {
      const uint2 narrow = kernels::load<Type::bf16>(base, i);
      v = {narrow.x << 16, narrow.x & 0xffff0000, narrow.y << 16, narrow.y & 0xffff0000};
    } else {
      v = kernels::load<Type::fp32>(base, i);
    }
  }
  __device__ float at(int k) const { return element < kFixed ? kType : Type::fp32 > (v, k); }
  static __device__ void store(Type type, void* base, std::int64_t i, const float (&x)[4]) {
    if constexpr (kFixed) {
      kernels::store<kType>(base, i, vector_of<kType>(x));
    } else if (type == Type::bf16) {
      kernels::store<Type::bf16>(base, i, vector_of<Type::bf16>(x));
    } else {
      kernels::store<Type::fp32>(base, i, vector_of<Type::fp32>(x));
    }
  }
};

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

// Types of a kernel. kFixed: of the gradient, and of both moments. Otherwise any that the arrays name.
template <bool kIsFixed, Type kGradType, Type kMomentType, int kVectorCount, bool kIsQuick = false>
struct Kind {
  static constexpr bool kFixed = kIsFixed;
  static constexpr bool kQuick = kIsQuick;
  static constexpr int kVectors = kVectorCount;  // a thread
  static constexpr std::int64_t kRow = kBlock * kWidth;
  static constexpr std::int64_t kTile = kRow * kVectors;
  using Grad = Four<kFixed, kGradType>;
  using Moment = Four<kFixed, kMomentType>;
};

// kCount vectors, a row apart, the first at i: all are read before one is written.
template <class K, int kCount>
__device__ void update_vectors(const RunArrays& a, std::int64_t i, const AdamwArrays& what, const AdamwStep& s,
                               const Reciprocals& r) {
  typename K::Grad g4[kCount];
  typename K::Moment m4[kCount], v4[kCount];
  Four<true, Type::fp32> p4[kCount];
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    const std::int64_t at = i + n * K::kRow;
    g4[n].load(what.grad_type, a.grad, at);
    m4[n].load(what.exp_avg_type, a.exp_avg, at);
    v4[n].load(what.exp_avg_sq_type, a.exp_avg_sq, at);
    p4[n].load(Type::fp32, a.master, at);
  }
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    const std::int64_t at = i + n * K::kRow;
    float g[4], m[4], v[4], p[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      g[k] = g4[n].at(k);
      m[k] = m4[n].at(k);
      v[k] = v4[n].at(k);
      p[k] = p4[n].at(k);
    }
    adamw_update4<K::kQuick>(p, g, m, v, s, r);
    p4[n].store(Type::fp32, a.master, at, p);
    m4[n].store(what.exp_avg_type, a.exp_avg, at, m);
    v4[n].store(what.exp_avg_sq_type, a.exp_avg_sq, at, v);
    store_param(a, at, p, what);
  }
}

__device__ float get(Type type, const void* base, std::int64_t i) {
  return type == Type::bf16 ? Values<Type::bf16>::get(elements<Type::bf16>(base)[i])
                            : static_cast<const float*>(base)[i];
}
template <Type kType>
__device__ void put(void* base, std::int64_t i, float x) {
  elements<kType>(base)[i] = Values<kType>::put(x);
}
__device__ void put(Type type, void* base, std::int64_t i, float x) {
  if (type == Type::bf16) {
    put<Type::bf16>(base, i, x);
  } else {
    put<Type::fp32>(base, i, x);
  }
}

__device__ void update_one(const RunArrays& a, std::int64_t i, const AdamwArrays& what, const AdamwStep& s) {
  float p = static_cast<float*>(a.master)[i];
  float m = get(what.exp_avg_type, a.exp_avg, i);
  float v = get(what.exp_avg_sq_type, a.exp_avg_sq, i);
  adamw_update(p, get(what.grad_type, a.grad, i), m, v, s);
  static_cast<float*>(a.master)[i] = p;
  put(what.exp_avg_type, a.exp_avg, i, m);
  put(what.exp_avg_sq_type, a.exp_avg_sq, i, v);
  if (a.param == nullptr) return;
  if (what.param_type == Type::bf16) {
    put<Type::bf16>(a.param, i, p);
  } else if (what.param_type == Type::fp16) {
    put<Type::fp16>(a.param, i, p);
  } else {
    put<Type::fp8_e4m3>(a.param, i, __fmul_rn(p, what.param_scale));
  }
}

template <class K, int kRuns>
__global__ void __launch_bounds__(kBlock)
    adamw_kernel(const __grid_constant__ AdamwArrays what, const __grid_constant__ AdamwStep step,
                 const __grid_constant__ Reciprocals r, const __grid_constant__ RunTable<kAdamwArrays, kRuns> table) {
  const Tile tile = table.template find<K::kTile>(blockIdx.x);
  const RunArrays a{.grad = table.at(what.grad, tile.run, kGrad),
                    .exp_avg = table.at(what.exp_avg, tile.run, kExpAvg),
                    .exp_avg_sq = table.at(what.exp_avg_sq, tile.run, kExpAvgSq),
                    .master = table.at(what.master, tile.run, kMaster),
                    .param = what.param == nullptr ? nullptr : table.at(what.param, tile.run, kFifth)};
  if (tile.whole) {
    update_vectors<K, K::kVectors>(a, tile.begin + threadIdx.x * kWidth, what, step, r);
    return;
  }
  for (std::int64_t i = tile.begin + threadIdx.x; i < tile.begin + K::kTile; i += kBlock) {
    if (i >= 0 && i < tile.numel) update_one(a, i, what, step);
  }
}

template <class K>
int launch_kind(const AdamwArrays& arrays, const std::vector<RunEntry<kAdamwArrays>>& entries, const AdamwStep& step,
                cudaStream_t stream) {
  return launch_runs(
      entries, K::kTile, [&]<int kRuns>(const RunTable<kAdamwArrays, kRuns>& table, unsigned blocks) -> int {
        return launch_kernel(adamw_kernel<K, kRuns>, blocks, stream, arrays, step, reciprocals(step), table);
      });
}

template <int kVectors, bool kQuick>
int launch_vectors(const AdamwArrays& arrays, const std::vector<RunEntry<kAdamwArrays>>& entries, const AdamwStep& step,
                   cudaStream_t stream) {
  constexpr Type kWide = Type::fp32, kNarrow = Type::bf16;
  if (arrays.exp_avg_type != arrays.exp_avg_sq_type) {
    return launch_kind<Kind<false, kWide, kWide, 1>>(arrays, entries, step, stream);
  }
  const bool grad = arrays.grad_type == kNarrow, moments = arrays.exp_avg_type == kNarrow;
  if (grad && moments)
    return launch_kind<Kind<true, kNarrow, kNarrow, kVectors, kQuick>>(arrays, entries, step, stream);
  if (grad) return launch_kind<Kind<true, kNarrow, kWide, kVectors, kQuick>>(arrays, entries, step, stream);
  if (moments) return launch_kind<Kind<true, kWide, kNarrow, kVectors, kQuick>>(arrays, entries, step, stream);
  return launch_kind<Kind<true, kWide, kWide, kVectors, kQuick>>(arrays, entries, step, stream);
}

}  // namespace

int adamw_variant = 2;

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
  const auto on = static_cast<cudaStream_t>(stream);
  switch (adamw_variant) {
    case 1:
      return launch_vectors<1, false>(arrays, entries, step, on);
    case 2:
      return launch_vectors<2, false>(arrays, entries, step, on);
    case 4:
      return launch_vectors<4, false>(arrays, entries, step, on);
    case 11:
      return launch_vectors<1, true>(arrays, entries, step, on);
    case 12:
      return launch_vectors<2, true>(arrays, entries, step, on);
    default:
      return launch_vectors<4, true>(arrays, entries, step, on);
  }
}

}  // namespace ebb::kernels
