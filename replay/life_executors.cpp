// What executes the lives of an equivalence: the reference with each stream held back, GPUs with each slowed down.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

#include "models/errors.hpp"
#include "replay/life_equivalence.hpp"

namespace ebb::replay {

namespace {

/// What the copies of all lives together may take.
constexpr Bytes kMostBytes = 4_GiB;

std::vector<Program> steps_of(std::span<const LifeRank> ranks) {
  std::vector<Program> steps;
  for (const LifeRank& rank : ranks) steps.push_back(*rank.programs[static_cast<std::size_t>(LifePart::step)]);
  return steps;
}

/// Some part of some rank has an op on such a stream.
bool uses(const LifePlans& plans, StreamKind kind) {
  for (const std::span<const LifeRank> ranks : {plans.own, plans.other}) {
    for (const LifeRank& rank : ranks) {
      for (const auto& program : rank.programs) {
        if (!program) continue;
        const Plan& plan = *program->plan;
        for (const Op& op : plan.ops)
          if (op.kind != OpKind::allocate && op.kind != OpKind::release && plan.streams[op.stream.index].kind == kind)
            return true;
      }
    }
  }
  return false;
}

RunLeg reference_leg(std::optional<StreamKind> held_back, std::size_t most_on) {
  return [=](std::span<const LifeRank> ranks, const LifeScript& script) {
    LifeRun run;
    run.ranks = reference_life(ranks, script, held_back, std::min(most_on, ranks.size() - 1));
    return run;
  };
}

}  // namespace

LifeExecutor cpu_executor(const LifePlans& policy) {
  Bytes bytes{1};
  for (const std::span<const LifeRank> ranks : {policy.own, policy.other}) {
    const std::vector<Program> steps = steps_of(ranks);
    check_reference_size(steps);
    bytes = std::max(bytes, bytes_of_run(steps));
  }
  LifeExecutor executor;
  executor.run = reference_leg(std::nullopt, 0);
  const std::size_t most = std::max(policy.own.size(), policy.other.size());
  for (const StreamKind kind :
       {StreamKind::host, StreamKind::compute, StreamKind::h2d, StreamKind::d2h, StreamKind::comm}) {
    if (!uses(policy, kind)) continue;
    for (std::size_t rank = 0; rank < most; ++rank)
      executor.disturbed.push_back({fmt::format("{} held back", name_of(kind)), reference_leg(kind, rank)});
  }
  const std::int64_t fit = std::max<std::int64_t>(1, kMostBytes.value / bytes.value);
  executor.at_once = std::min(static_cast<std::size_t>(std::max(1U, std::thread::hardware_concurrency())),
                              static_cast<std::size_t>(fit));
  return executor;
}

LifeExecutor gpu_executor(const LifePlans& policy, const std::vector<int>& devices) {
  ExecuteOptions options;
  options.training.digests = true;
  options.devices = devices;
  options.compute = false;
  options.framework_time = false;
  options.link = false;
  options.poison = true;
  const auto leg = [options](std::optional<StreamKind> slow) -> RunLeg {
    return [options, slow](std::span<const LifeRank> ranks, const LifeScript& script) {
      ExecuteOptions own = options;
      own.slow = slow;
      // Devices are named for the larger number of ranks.
      if (own.devices.size() > ranks.size()) own.devices.resize(ranks.size());
      return execute_life(ranks, script, own);
    };
  };
  LifeExecutor executor;
  executor.on_gpu = true;
  executor.run = leg(std::nullopt);
  for (const StreamKind kind : {StreamKind::compute, StreamKind::h2d, StreamKind::d2h, StreamKind::comm})
    if (uses(policy, kind)) executor.disturbed.push_back({fmt::format("{} slowed", name_of(kind)), leg(kind)});
  return executor;
}

}  // namespace ebb::replay
