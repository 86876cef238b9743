// Runs of a Program as the kernels and their references take them.
#pragma once

#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/runs.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

inline std::vector<kernels::AdamwRun> adamw_runs(const std::vector<StateRun>& runs) {
  std::vector<kernels::AdamwRun> result;
  result.reserve(runs.size());
  for (const StateRun& run : runs) {
    result.push_back({.grad = run.grad.value,
                      .exp_avg = run.exp_avg.value,
                      .exp_avg_sq = run.exp_avg_sq.value,
                      .master = run.master.value,
                      .param = run.param.value,
                      .numel = run.elements.numel().value});
  }
  return result;
}

inline std::vector<kernels::Run> grad_runs(const std::vector<GradRun>& runs) {
  std::vector<kernels::Run> result;
  result.reserve(runs.size());
  for (const GradRun& run : runs) result.push_back({run.at.value, run.elements.begin, run.elements.numel().value});
  return result;
}

}  // namespace ebb::replay
