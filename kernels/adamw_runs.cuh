// Checks AdamW's arguments and turns its runs into table entries, for the fused and the unfused launcher.
#pragma once

#include <span>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/run_table.cuh"

namespace ebb::kernels {

// Order of the arrays in a table; the fifth is the parameter, or the scratch of the unfused passes.
enum : int { kGrad, kExpAvg, kExpAvgSq, kMaster, kFifth, kAdamwArrays };

inline bool adamw_knows(const AdamwArrays& a) {
  const auto wide = [](Type type) { return type == Type::fp32 || type == Type::bf16; };
  return wide(a.grad_type) && wide(a.exp_avg_type) && wide(a.exp_avg_sq_type) &&
         (a.param == nullptr || a.param_type != Type::fp32);
}

/// Runs with elements; offset and shift of the fifth array are left as if there were none.
inline RunEntry<kAdamwArrays> adamw_entry(const AdamwArrays& a, const AdamwRun& run) {
  const std::uint8_t shift =
      common_shift(common_shift(shift_of(a.grad, run.grad, bytes_of(a.grad_type)), shift_of(a.master, run.master, 4)),
                   common_shift(shift_of(a.exp_avg, run.exp_avg, bytes_of(a.exp_avg_type)),
                                shift_of(a.exp_avg_sq, run.exp_avg_sq, bytes_of(a.exp_avg_sq_type))));
  return {.offset = {run.grad, run.exp_avg, run.exp_avg_sq, run.master, 0}, .numel = run.numel, .shift = shift};
}

}  // namespace ebb::kernels
