#include "replay/ready.hpp"

#include "models/errors.hpp"
#include "replay/kernel_runs.hpp"

namespace ebb::replay {

namespace {

/// Overloads of one name as one callable.
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

constexpr std::uint32_t kRunsPerLaunch = 512;  // kernels/runs.hpp

std::uint32_t launches(std::size_t runs) {
  return static_cast<std::uint32_t>((runs + kRunsPerLaunch - 1) / kRunsPerLaunch);
}

/// Indexed by owned element (training.hpp).
std::array<DigestRuns, 3> digest_runs(const Precision& precision, const std::vector<StateRun>& runs) {
  std::array<DigestRuns, 3> result;
  result[0] = {kExpAvg, kernel_type(precision.exp_avg), {}};
  result[1] = {kExpAvgSq, kernel_type(precision.exp_avg_sq), {}};
  result[2] = {kMaster, kernels::Type::fp32, {}};
  for (DigestRuns& digest : result) digest.runs.reserve(runs.size());
  for (const StateRun& run : runs) {
    const std::int64_t numel = run.elements.numel().value;
    result[0].runs.push_back({run.exp_avg.value, run.elements.begin, numel});
    result[1].runs.push_back({run.exp_avg_sq.value, run.elements.begin, numel});
    result[2].runs.push_back({run.master.value, run.elements.begin, numel});
  }
  return result;
}

ReadyAdam ready(const Plan& plan, const DeviceAdam& action) {
  ReadyAdam result;
  result.foreach = action.foreach;
  result.moments = action.moments;
  result.masters = action.masters;
  result.grads = action.grads;
  result.params = action.params;
  result.scratch = action.scratch;
  result.types.grad_type = kernel_type(action.grad_type);
  result.types.exp_avg_type = kernel_type(plan.precision.exp_avg);
  result.types.exp_avg_sq_type = kernel_type(plan.precision.exp_avg_sq);
  result.types.param_type = kernel_type(plan.precision.params);
  result.runs = adamw_runs(action.runs);
  result.digests = digest_runs(plan.precision, action.runs);
  return result;
}

ReadyCast ready(const Cast& action) {
  ReadyCast result{action.from, action.to, kernel_type(action.from_type), kernel_type(action.to_type), {}};
  result.runs.reserve(action.runs.size());
  for (const CastRun& run : action.runs) result.runs.push_back({run.from.value, run.to.value, run.numel.value});
  return result;
}

template <class Action>
ReadyNorm ready_norm(const Action& action) {
  return {action.grads, action.norm, kernel_type(action.type), grad_runs(action.runs)};
}

}  // namespace

std::vector<Ready> ready_actions(const Program& program) {
  const Plan& plan = *program.plan;
  EBB_ASSERT(program.actions.size() == plan.ops.size());
  std::vector<Ready> result;
  result.reserve(program.actions.size());
  for (const Action& action : program.actions) {
    std::visit(Overloaded{[&](const DeviceAdam& a) { result.emplace_back(ready(plan, a)); },
                          [&](const HostAdam& a) {
                            result.emplace_back(ReadyHostAdam{adamw_runs(a.runs), digest_runs(plan.precision, a.runs)});
                          },
                          [&](const Cast& a) { result.emplace_back(ready(a)); },
                          [&](const Norm& a) { result.emplace_back(ready_norm(a)); },
                          [&](const Clip& a) { result.emplace_back(ReadyClip{ready_norm(a)}); },
                          [&](const auto& a) { result.emplace_back(a); }},
               action);
  }
  return result;
}

std::uint32_t commands_of(const Ready& action) {
  constexpr std::uint32_t kForeachPasses = 10;
  return std::visit(
      Overloaded{[](const Copy& a) { return static_cast<std::uint32_t>(a.transfers.size()); },
                 [](const ReadyAdam& a) { return (a.foreach ? kForeachPasses : 4) * launches(a.runs.size()); },
                 [](const ReadyCast& a) { return launches(a.runs.size()); },
                 [](const ReadyNorm& a) { return 2 * launches(a.runs.size()); },
                 [](const ReadyClip& a) { return 2 + launches(a.runs.size()); },
                 [](const BucketCollective& a) { return static_cast<std::uint32_t>(a.buckets.size()); },
                 [](const NormCollective&) { return 1U; }, [](const ZeroGrads&) { return 1U; },
                 [](const auto&) { return 0U; }},
      action);
}

}  // namespace ebb::replay
