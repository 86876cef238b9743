// AdamW as nine elementwise passes, the stand-in for an optimizer that is not fused. Bytes an element (fp32 gradients):
//
//   m = beta1 m                8     v = beta2 v                     8     s = v / bc2        8     s = (m / bc1) / s
//   12 m = m + (1 - beta1) g     12     v = v + ((1 - beta2) g) g      12     s = sqrt(s)        8     p = p - lr (s +
//   wd p) 12
//                                                                          s = s + epsilon    8                  sum 88
//
// Each operation and its rounding is the fused kernel's, so the bits are the same; only the values in between lie in
// memory. (torch's foreach AdamW has the same kinds of pass, but decays the weight first, which rounds differently.)
// A parameter held apart is one cast more.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/adamw_math.cuh"
#include "kernels/adamw_runs.cuh"
#include "kernels/elementwise.hpp"
#include "kernels/run_table.cuh"
#include "kernels/values.cuh"

namespace ebb::kernels {
namespace {

constexpr int kVectors = 4;  // a thread: a pass moves so little that one would leave it bound by block starts
constexpr std::int64_t kTile = kBlock * kWidth * kVectors;

struct Bases {
  const void* base[kAdamwArrays];
  AdamwStep step;
};

enum class Pass { decay_avg, add_avg, decay_sq, add_sq, correct, root, epsilon, divide, step };

// What a pass reads (y < 0: only x) and writes: x and z are arrays of fp32, y the gradients in a type of their own or
// an array of fp32.
struct Operands {
  int z, x, y;
};
__host__ __device__ constexpr Operands operands(Pass pass) {
  switch (pass) {
    case Pass::decay_avg:
      return {kExpAvg, kExpAvg, -1};
    case Pass::add_avg:
      return {kExpAvg, kExpAvg, kGrad};
    case Pass::decay_sq:
      return {kExpAvgSq, kExpAvgSq, -1};
    case Pass::add_sq:
      return {kExpAvgSq, kExpAvgSq, kGrad};
    case Pass::correct:
      return {kFifth, kExpAvgSq, -1};
    case Pass::root:
      return {kFifth, kFifth, -1};
    case Pass::epsilon:
      return {kFifth, kFifth, -1};
    case Pass::divide:
      return {kFifth, kFifth, kExpAvg};
    default:
      return {kMaster, kMaster, kFifth};
  }
}

template <Pass kPass>
__device__ float apply(float x, float y, const AdamwStep& s) {
  switch (kPass) {
    case Pass::decay_avg:
      return __fmul_rn(s.beta1, x);
    case Pass::add_avg:
      return __fadd_rn(x, __fmul_rn(s.one_minus_beta1, y));
    case Pass::decay_sq:
      return __fmul_rn(s.beta2, x);
    case Pass::add_sq:
      return __fadd_rn(x, __fmul_rn(__fmul_rn(s.one_minus_beta2, y), y));
    case Pass::correct:
      return __fdiv_rn(x, s.bias_correction2);
    case Pass::root:
      return __fsqrt_rn(x);
    case Pass::epsilon:
      return __fadd_rn(x, s.epsilon);
    case Pass::divide:
      return __fdiv_rn(__fdiv_rn(y, s.bias_correction1), x);
    default:
      return next_master(x, y, s);
  }
}

template <Pass kPass, Type kY, int kRuns>
__global__ void __launch_bounds__(kBlock)
    pass_kernel(const Bases bases, const __grid_constant__ RunTable<kAdamwArrays, kRuns> table) {
  constexpr Operands kOperands = operands(kPass);
  constexpr bool kBinary = kOperands.y >= 0;
  const Tile tile = table.template find<kTile>(blockIdx.x);
  const auto array = [&](int k) { return table.at(bases.base[k], tile.run, k); };
  const void* x = array(kOperands.x);
  const void* y = array(kBinary ? kOperands.y : kOperands.x);
  void* z = const_cast<void*>(array(kOperands.z));
  if (tile.whole) {
    Vector<Type::fp32> x4[kVectors];
    Vector<kY> y4[kVectors];
    const std::int64_t first = tile.begin + threadIdx.x * kWidth;
#pragma unroll
    for (int n = 0; n < kVectors; ++n) {
      x4[n] = load<Type::fp32>(x, first + n * kBlock * kWidth);
      if constexpr (kBinary) y4[n] = load<kY>(y, first + n * kBlock * kWidth);
    }
#pragma unroll
    for (int n = 0; n < kVectors; ++n) {
      float r[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        r[k] = apply<kPass>(element<Type::fp32>(x4[n], k), kBinary ? element<kY>(y4[n], k) : 0, bases.step);
      }
      store<Type::fp32>(z, first + n * kBlock * kWidth, vector_of<Type::fp32>(r));
    }
    return;
  }
  for (std::int64_t i = tile.begin + threadIdx.x; i < tile.begin + kTile; i += kBlock) {
    if (i < 0 || i >= tile.numel) continue;
    const float second = kBinary ? Values<kY>::get(elements<kY>(y)[i]) : 0;
    static_cast<float*>(z)[i] = apply<kPass>(static_cast<const float*>(x)[i], second, bases.step);
  }
}

template <Pass kPass, Type kY = Type::fp32>
int launch_pass(const Bases& bases, const std::vector<RunEntry<kAdamwArrays>>& entries, cudaStream_t stream) {
  return launch_runs(entries, kTile,
                     [&]<int kRuns>(const RunTable<kAdamwArrays, kRuns>& table, unsigned blocks) -> int {
                       return launch_kernel(pass_kernel<kPass, kY, kRuns>, blocks, stream, bases, table);
                     });
}

template <Type kGradType>
int launch_passes(const Bases& bases, const std::vector<RunEntry<kAdamwArrays>>& entries, cudaStream_t stream) {
  constexpr decltype(&launch_pass<Pass::root>) kPasses[] = {
      launch_pass<Pass::decay_avg>, launch_pass<Pass::add_avg, kGradType>,
      launch_pass<Pass::decay_sq>,  launch_pass<Pass::add_sq, kGradType>,
      launch_pass<Pass::correct>,   launch_pass<Pass::root>,
      launch_pass<Pass::epsilon>,   launch_pass<Pass::divide>,
      launch_pass<Pass::step>};
  for (const auto pass : kPasses) {
    const int code = pass(bases, entries, stream);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace

int launch_adamw_foreach(const AdamwArrays& arrays, std::span<const AdamwRun> runs, const AdamwStep& step,
                         void* scratch, void* stream) {
  if (!adamw_knows(arrays) || arrays.exp_avg_type != Type::fp32 || arrays.exp_avg_sq_type != Type::fp32) {
    return cudaErrorInvalidValue;
  }
  std::vector<RunEntry<kAdamwArrays>> entries;
  std::vector<CastRun> casts;
  std::int64_t scratch_offset = 0;
  for (const AdamwRun& run : runs) {
    if (run.numel < 0) return cudaErrorInvalidValue;
    if (run.numel == 0) continue;
    RunEntry<kAdamwArrays> entry = adamw_entry(arrays, run);
    entry.offset[kFifth] = scratch_offset;
    entry.shift = common_shift(entry.shift, shift_of(scratch, scratch_offset, 4));
    entries.push_back(entry);
    casts.push_back({.source = run.master, .destination = run.param, .numel = run.numel});
    scratch_offset += 4 * run.numel;
  }
  const Bases bases{.base = {arrays.grad, arrays.exp_avg, arrays.exp_avg_sq, arrays.master, scratch}, .step = step};
  const auto on = static_cast<cudaStream_t>(stream);
  const int code = arrays.grad_type == Type::bf16 ? launch_passes<Type::bf16>(bases, entries, on)
                                                  : launch_passes<Type::fp32>(bases, entries, on);
  if (code != cudaSuccess || arrays.param == nullptr) return code;
  return launch_cast({.source = arrays.master,
                      .destination = arrays.param,
                      .source_type = Type::fp32,
                      .destination_type = arrays.param_type,
                      .scale = arrays.param_scale},
                     casts, stream);
}

}  // namespace ebb::kernels
