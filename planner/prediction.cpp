#include "planner/prediction.hpp"

#include <fmt/format.h>

#include <map>
#include <numeric>

#include "models/errors.hpp"
#include "planner/peak_bound.hpp"
#include "planner/verify.hpp"
#include "planner/verify_together.hpp"
#include "sim/simulator.hpp"

namespace ebb {

namespace {

bool is_collective(Work work) { return work >= Work::all_gather && work <= Work::all_to_all; }
bool is_host_work(Work work) {
  return (work >= Work::chunk_overhead && work <= Work::pin) || work == Work::make_masters || work == Work::store ||
         work == Work::fetch;
}

/// What is wrong with an op that a file can hold and no planner writes; "": nothing.
std::string fault_of(const Op& op) {
  const bool room = op.kind == OpKind::allocate || op.kind == OpKind::release;
  if (room && !op.buffer.valid()) return "it names no buffer";
  if (op.kind == OpKind::collective && !is_collective(op.work)) return "it is no collective";
  if (op.kind == OpKind::collective && op.domains > op.members) return "it has more domains than members";
  if (op.kind == OpKind::host_work && !is_host_work(op.work)) return "it is no work of the host";
  return "";
}

/// The first collective that is not on the stream of the others over the same ranks; ops.size(): there is none.
std::size_t stray_collective(const Plan& plan) {
  std::map<CommGroup, StreamId> stream_of;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind != OpKind::collective || op.members <= 1) continue;
    if (stream_of.emplace(group_of(plan, op), op.stream).first->second != op.stream) return i;
  }
  return plan.ops.size();
}

[[noreturn]] void refuse(const std::string& file, const std::string& problem) {
  throw InputError({file}, problem, "write it with ebb simulate JOB -o FILE");
}

void require_runnable(std::span<const Plan> plans, const Cluster& cluster, const std::string& file) {
  for (std::size_t r = 0; r < plans.size(); ++r) {
    const Plan& plan = plans[r];
    if (plan.part != plans[0].part) refuse(file, "it holds several parts of a life, which do not run together");
    if (plan.rank != plans[0].rank + static_cast<std::int64_t>(r))
      refuse(file, fmt::format("ranks[{}]: rank {} does not follow rank {}", r, plan.rank, plans[r - 1].rank));
    for (std::size_t i = 0; i < plan.ops.size(); ++i)
      if (const std::string fault = fault_of(plan.ops[i]); !fault.empty())
        refuse(file, fmt::format("ranks[{}].ops[{}]: {}", r, i, fault));
    if (const std::size_t stray = stray_collective(plan); stray < plan.ops.size())
      refuse(file, fmt::format("ranks[{}].ops[{}].stream: not that of the others over the same ranks", r, stray));
    if (const auto hazards = verify(plan); !hazards.empty())
      refuse(file, fmt::format("ranks[{}]: {}", r, hazards.front().text));
    // Init, loads and saves are not below it.
    const Bytes cap = plan.part == LifePart::step ? plan.candidate.cap : Bytes{0};
    if (const Bytes peak = cap.value > 0 ? peak_bound(plan).bytes : Bytes{0}; peak > cap)
      refuse(file, fmt::format("ranks[{}]: {} bytes may be alive, above its own cap of {}", r, peak.value, cap.value));
  }
  if (const auto hazards = verify_together(plans); !hazards.empty()) refuse(file, hazards.front().text);
  if (static_cast<std::int64_t>(plans.size()) > cluster.gpus_per_host)
    throw InputError({file},
                     fmt::format("{} ranks of one host, but cluster {} has {} GPUs a host", plans.size(), cluster.name,
                                 cluster.gpus_per_host),
                     "give the cluster it was made for");
}

}  // namespace

TimelineFile prediction_of(std::span<const Plan> plans, std::span<const Timeline> timelines,
                           const std::string& cluster) {
  EBB_ASSERT(!plans.empty() && plans.size() == timelines.size());
  TimelineFile file;
  file.source = TimelineSource::predicted;
  file.job = plans.front().job;
  file.candidate = plans.front().candidate;
  file.plan_digest = digest_of(plans);
  file.cluster = cluster;
  for (std::size_t i = 0; i < plans.size(); ++i) file.ranks.push_back(rank_timeline(plans[i], timelines[i]));
  return file;
}

std::vector<Timeline> simulate_plans(std::span<const Plan> plans, const Cluster& cluster, const std::string& file) {
  EBB_ASSERT(!plans.empty());
  require_runnable(plans, cluster, file);
  // Each rank is a class of its own: equal plans fold only where their shards are equal too, and one simulation of a
  // host is fast enough without.
  sim::HostRuns runs;
  runs.first_rank = plans.front().rank;
  runs.class_of_place.resize(plans.size());
  std::iota(runs.class_of_place.begin(), runs.class_of_place.end(), 0U);
  for (const Plan& plan : plans) runs.plans.push_back(&plan);
  std::vector<Timeline> timelines;
  sim::Simulator().run(runs, cluster, timelines);
  return timelines;
}

}  // namespace ebb
