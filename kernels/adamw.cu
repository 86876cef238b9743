// AdamW on the GPU: a block of 128 threads takes a tile of 1,024 elements, two vectors of four a thread, all read
// before the first is written.
//
// Measured on one H200 (driver 580.159, CUDA 13.0), read and written, in parts of a device-to-device copy of 4 GiB in
// the same run (4.24 TB/s); 290 runs are a transformer's shards, 9.8 10^8 elements:
//
//   gradients  moments  parameter   2^30 elements in one run   290 runs
//   fp32       fp32     -           1.001 (2^28: 0.996)        0.999
//   fp32       fp32     bf16        0.988                      0.987
//   fp32       bf16     bf16        0.991                      0.989
//   bf16       fp32     bf16        0.979                      0.978
//   bf16       bf16     bf16        0.977                      0.974
//
// With one vector a thread the last line is 0.958 and 0.933, with four the first is 0.982 and 0.991. Blocks of 256 and
// streaming loads were slower. Divisions without the compiler's checks made the last line 0.978, no better, and the
// first 0.996.
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

// Four elements of an array, of kType if kFixed, else of fp32 or bf16 as the launch says.
template <bool kFixed, Type kType>
struct Four {
  static constexpr Type kHeld = kFixed ? kType : Type::fp32;
  Vector<kHeld> v;

  __device__ static Type type(Type at_launch) { return kFixed ? kType : at_launch; }
  __device__ void load(Type at_launch, const void* base, std::int64_t i) {
    if constexpr (kFixed) {
      v = kernels::load<kType>(base, i);
    } else if (at_launch == Type::bf16) {
      const uint2 narrow = kernels::load<Type::bf16>(base, i);
      v = {narrow.x << 16, narrow.x & 0xffff0000, narrow.y << 16, narrow.y & 0xffff0000};
    } else {
      v = kernels::load<Type::fp32>(base, i);
    }
  }
  __device__ float at(int k) const { return element<kHeld>(v, k); }
  __device__ static void store(Type at_launch, void* base, std::int64_t i, const float (&x)[4]) {
    if constexpr (kFixed) {
      kernels::store<kType>(base, i, vector_of<kType>(x));
    } else if (at_launch == Type::bf16) {
      kernels::store<Type::bf16>(base, i, vector_of<Type::bf16>(x));
    } else {
      kernels::store<Type::fp32>(base, i, vector_of<Type::fp32>(x));
    }
  }
};

// What a kernel is compiled for: types of the gradient and of both moments, and vectors a thread.
template <Type kGradType, Type kMomentType>
struct Fixed {
  static constexpr int kVectors = 2;
  using Grad = Four<true, kGradType>;
  using Moment = Four<true, kMomentType>;
};
// Any types: moments of two types are rare, and share this one kernel.
struct Any {
  static constexpr int kVectors = 1;
  using Grad = Four<false, Type::fp32>;
  using Moment = Four<false, Type::fp32>;
};
constexpr std::int64_t kRow = kBlock * kWidth;
template <class K>
constexpr std::int64_t kTileOf = kRow* K::kVectors;

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
__device__ void update_vectors(const RunArrays& a, std::int64_t i, const AdamwArrays& what, const AdamwStep& s) {
  typename K::Grad g4[K::kVectors];
  typename K::Moment m4[K::kVectors], v4[K::kVectors];
  Vector<Type::fp32> p4[K::kVectors];
#pragma unroll
  for (int n = 0; n < K::kVectors; ++n) {
    const std::int64_t at = i + n * kRow;
    g4[n].load(what.grad_type, a.grad, at);
    m4[n].load(what.exp_avg_type, a.exp_avg, at);
    v4[n].load(what.exp_avg_sq_type, a.exp_avg_sq, at);
    p4[n] = load<Type::fp32>(a.master, at);
  }
#pragma unroll
  for (int n = 0; n < K::kVectors; ++n) {
    const std::int64_t at = i + n * kRow;
    float m[4], v[4], p[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      m[k] = m4[n].at(k);
      v[k] = v4[n].at(k);
      p[k] = element<Type::fp32>(p4[n], k);
      adamw_update(p[k], g4[n].at(k), m[k], v[k], s);
    }
    store<Type::fp32>(a.master, at, vector_of<Type::fp32>(p));
    K::Moment::store(what.exp_avg_type, a.exp_avg, at, m);
    K::Moment::store(what.exp_avg_sq_type, a.exp_avg_sq, at, v);
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
  const Type avg = K::Moment::type(what.exp_avg_type), sq = K::Moment::type(what.exp_avg_sq_type);
  float g[4], m[4], v[4], p[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::int64_t at = i + k * kBlock;
    if (at < 0 || at >= numel) continue;
    g[k] = get(K::Grad::type(what.grad_type), a.grad, at);
    m[k] = get(avg, a.exp_avg, at);
    v[k] = get(sq, a.exp_avg_sq, at);
    p[k] = static_cast<const float*>(a.master)[at];
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::int64_t at = i + k * kBlock;
    if (at < 0 || at >= numel) continue;
    adamw_update(p[k], g[k], m[k], v[k], s);
    put<Type::fp32>(a.master, at, p[k]);
    put(avg, a.exp_avg, at, m[k]);
    put(sq, a.exp_avg_sq, at, v[k]);
    put_param(a, at, p[k], what);
  }
}

template <class K, int kRuns>
__global__ void __launch_bounds__(kBlock)
    adamw_kernel(const __grid_constant__ AdamwArrays what, const __grid_constant__ AdamwStep step,
                 const __grid_constant__ RunTable<kAdamwArrays, kRuns> table) {
  const Tile tile = table.template find<kTileOf<K>>(blockIdx.x);
  const RunArrays a{.grad = table.at(what.grad, tile.run, kGrad),
                    .exp_avg = table.at(what.exp_avg, tile.run, kExpAvg),
                    .exp_avg_sq = table.at(what.exp_avg_sq, tile.run, kExpAvgSq),
                    .master = table.at(what.master, tile.run, kMaster),
                    .param = what.param == nullptr ? nullptr : table.at(what.param, tile.run, kFifth)};
  if (tile.whole) {
    update_vectors<K>(a, tile.begin + threadIdx.x * kWidth, what, step);
    return;
  }
#pragma unroll 1
  for (int n = 0; n < K::kVectors; ++n) {
    update_elements<K>(a, tile.begin + n * kRow + threadIdx.x, tile.numel, what, step);
  }
}

template <class K>
int launch_kind(const AdamwArrays& arrays, const std::vector<RunEntry<kAdamwArrays>>& entries, const AdamwStep& step,
                cudaStream_t stream) {
  return launch_runs(entries, kTileOf<K>,
                     [&]<int kRuns>(const RunTable<kAdamwArrays, kRuns>& table, unsigned blocks) -> int {
                       return launch_kernel(adamw_kernel<K, kRuns>, blocks, stream, arrays, step, table);
                     });
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
  const auto on = static_cast<cudaStream_t>(stream);
  constexpr Type kWide = Type::fp32, kNarrow = Type::bf16;
  if (arrays.exp_avg_type != arrays.exp_avg_sq_type) return launch_kind<Any>(arrays, entries, step, on);
  if (arrays.exp_avg_type == kNarrow) {
    return arrays.grad_type == kNarrow ? launch_kind<Fixed<kNarrow, kNarrow>>(arrays, entries, step, on)
                                       : launch_kind<Fixed<kWide, kNarrow>>(arrays, entries, step, on);
  }
  return arrays.grad_type == kNarrow ? launch_kind<Fixed<kNarrow, kWide>>(arrays, entries, step, on)
                                     : launch_kind<Fixed<kWide, kWide>>(arrays, entries, step, on);
}

}  // namespace ebb::kernels
