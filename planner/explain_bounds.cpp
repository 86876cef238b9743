// What no schedule can be below: the time of a step phase's bytes at the rates of link and device memory, and the
// allocated bytes at the peak without any optimizer state.
//   link           max(in / rate in, out / rate out, (in + out) / rate of both ways together)
//   device memory  sum over kernels of bytes / rate; Adam over fp32 state moves 28 bytes an element (op_cost.hpp)
//   host Adam      28 bytes an element / the rank's share of host.cpu_adam
#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "planner/explain_parts.hpp"
#include "planner/link_limit.hpp"

namespace ebb {

namespace {

struct Moved {
  Bytes in{0};
  Bytes out{0};
  Bytes adam{0};
  Bytes other{0};  // kernels
  Bytes host_adam{0};
  bool foreach = false;
};

Moved moved_in_step(const Plan& plan) {
  Moved moved;
  for (const Op& op : plan.ops) {
    if (op.phase != Phase::step) continue;
    const bool adam = op.work == Work::adam || op.work == Work::adam_foreach;
    if (op.kind == OpKind::copy_h2d) moved.in += op.bytes;
    if (op.kind == OpKind::copy_d2h) moved.out += op.bytes;
    if (op.kind == OpKind::kernel) (adam ? moved.adam : moved.other) += op.bytes;
    if (op.kind == OpKind::host_work && op.work == Work::cpu_adam) moved.host_adam += op.bytes;
    moved.foreach = moved.foreach || op.work == Work::adam_foreach;
  }
  return moved;
}

std::string gigabytes(Bytes bytes) { return fmt::format("{:.4g} GB", static_cast<double>(bytes.value) / 1e9); }

reports::LowerBound link_bound(const Job& job, const Moved& moved) {
  const std::int64_t ranks = ranks_per_host(job);
  const LinkLimit in = link_limit(job.cluster, ranks, LinkUse::to_device);
  const LinkLimit out = link_limit(job.cluster, ranks, LinkUse::to_host);
  const LinkLimit both = link_limit(job.cluster, ranks, LinkUse::both_ways);
  const Seconds in_time = moved.in / in.rate;
  const Seconds out_time = moved.out / out.rate;
  const Seconds both_time = (moved.in + moved.out) / both.rate;
  const bool one_way = std::max(in_time, out_time) > both_time;
  const LinkLimit& limit = !one_way ? both : in_time >= out_time ? in : out;
  return {"link", std::max({in_time, out_time, both_time}),
          fmt::format("{} in and {} out a rank at {} {} ({}: {})", gigabytes(moved.in), gigabytes(moved.out),
                      format_bandwidth(limit.rate), one_way ? "one way" : "both ways together", limit.figure,
                      limit.source)};
}

reports::LowerBound memory_time(const Job& job, const Moved& moved) {
  const Gpu& gpu = job.cluster.gpu;
  const Sourced<BytesPerSecond>& adam = moved.foreach ? gpu.adam_foreach : gpu.adam;
  return {"device memory", moved.adam / adam.value + moved.other / gpu.hbm.value,
          fmt::format("Adam over {} at {} ({}: {}), other kernels over {}", gigabytes(moved.adam),
                      format_bandwidth(adam.value), moved.foreach ? "gpu.adam_foreach" : "gpu.adam", adam.source,
                      gigabytes(moved.other))};
}

reports::LowerBound host_adam_time(const Job& job, const Moved& moved) {
  const Sourced<BytesPerSecond>& rate = job.cluster.host.cpu_adam;
  return {"host Adam",
          {(moved.host_adam / rate.value).value * static_cast<double>(ranks_per_host(job))},
          fmt::format("{} a rank at a share of {} (host.cpu_adam: {})", gigabytes(moved.host_adam),
                      format_bandwidth(rate.value), rate.source)};
}

/// Highest live device bytes in program order that are not optimizer state, up to the end of backward: what follows is
/// not every policy's. Gradients are copied for the norm or not, and kernels of Adam differ in their scratch memory.
Bytes peak_without_state(const Plan& plan) {
  Bytes live{0};
  Bytes peak{0};
  const auto change = [&](const Buffer& buffer, std::int64_t sign) {
    if (buffer.memory != Memory::device || buffer.role == Role::state) return;
    live += buffer.bytes * sign;
    peak = std::max(peak, live);
  };
  for (const Buffer& buffer : plan.buffers)
    if (buffer.initial) change(buffer, 1);
  for (const Op& op : plan.ops) {
    if (op.phase == Phase::finalize || op.phase == Phase::step) break;
    if (op.kind == OpKind::allocate) change(plan.buffers[op.buffer.index], 1);
    if (op.kind == OpKind::release) change(plan.buffers[op.buffer.index], -1);
  }
  return peak;
}

}  // namespace

std::vector<reports::LowerBound> step_bounds(const Job& job, const SlowestRank& slowest) {
  const Moved moved = moved_in_step(slowest.plan);
  std::vector<reports::LowerBound> bounds;
  if (moved.in + moved.out > Bytes{0}) bounds.push_back(link_bound(job, moved));
  bounds.push_back(memory_time(job, moved));
  if (moved.host_adam > Bytes{0}) bounds.push_back(host_adam_time(job, moved));
  return bounds;
}

reports::MemoryBound memory_bound(const Evaluator& evaluator, const Answer& answer) {
  reports::MemoryBound bound;
  bound.peak = answer.device_peak;
  for (const std::size_t index : answer.reserving_ranks) {
    const RankModel& rank = evaluator.ranks()[index];
    // Under resident, whose frame every policy has.
    const Bytes least = peak_without_state(lower(rank, Candidate{}));
    if (least <= bound.least) continue;
    bound.least = least;
    bound.rank = rank.rank;
  }
  return bound;
}

}  // namespace ebb
