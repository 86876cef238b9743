// The path of a step in a report's words, and the sentence about what decides it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/quantity_text.hpp"
#include "planner/explain_parts.hpp"
#include "planner/link_limit.hpp"

namespace ebb {

void explain_path(const Job& job, const RankModel& rank, const SlowestRank& slowest, reports::Explanation& into) {
  const Plan& plan = slowest.plan;
  const std::vector<PathOp> path = step_path(plan, slowest.timeline);
  into.rank = rank.rank;
  into.step = to_seconds(slowest.summary.total);
  into.path_operations = static_cast<std::int64_t>(path.size());
  for (const PathOp& step : path) {
    if (into.path.size() == kMostPathOperations) break;
    const Op& op = plan.ops[step.op.index];
    into.path.push_back({static_cast<std::int64_t>(step.op.index), std::string(name_of(op.phase)), what_of(op),
                         plan.streams[op.stream.index].name, to_seconds(step.start), to_seconds(step.end),
                         std::string(name_of(step.wait)), to_seconds(step.waited)});
  }
  const std::vector<Segment> segments = segments_of(plan, path, kMostPathSegments);
  const std::vector<std::int64_t> shares = thousandths_of(segments);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& s = segments[i];
    into.segments.push_back({s.phase, s.what, s.stream, std::string(name_of(s.wait)), s.operations, to_seconds(s.time),
                             static_cast<double>(shares[i]) / 10});
  }
  into.bottleneck = bottleneck_of(job, rank, plan, path);
}

namespace {

std::string flop_rate(FlopsPerSecond rate) { return fmt::format("{:.4g} TFLOP/s", rate.value / 1e12); }

std::string compute_figure(const Job& job, const RankModel& rank) {
  if (rank.compute.measured) return "as the job measured it (compute.step_seconds)";
  const Gpu& gpu = job.cluster.gpu;
  const bool fp8 = job.precision.fp8 != Fp8Recipe::none;
  const Sourced<FlopsPerSecond>& rate = fp8 ? gpu.matrix_fp8 : gpu.matrix_bf16;
  return fmt::format("by roofline: {} of {} ({}) at an efficiency of {:.3g} ({})",
                     fp8 ? "gpu.matrix_fp8" : "gpu.matrix_bf16", flop_rate(rate.value), rate.source,
                     gpu.compute_efficiency.value, gpu.compute_efficiency.source);
}

/// Whether the plan's copies run both ways at a time for some of the path's time in them.
bool both_ways(Policy policy) { return policy == Policy::windowed || cuts_elements(policy); }

/// Time of the path's copies, by direction.
struct CopyTimes {
  Ticks in{0};
  Ticks out{0};

  /// Neither direction takes twice as long as the other.
  bool alike() const { return std::min(in, out) * 2 > std::max(in, out); }
};

CopyTimes copy_times(const Plan& plan, const std::vector<PathOp>& path) {
  CopyTimes times;
  for (const PathOp& step : path) {
    const OpKind kind = plan.ops[step.op.index].kind;
    if (kind == OpKind::copy_h2d) times.in += step.end - step.start;
    if (kind == OpKind::copy_d2h) times.out += step.end - step.start;
  }
  return times;
}

std::string link_figure(const Job& job, const Plan& plan, const std::vector<PathOp>& path) {
  const std::int64_t ranks = ranks_per_host(job);
  const std::string shared = ranks == 1 ? "" : fmt::format(" a GPU while all {} of a host copy", ranks);
  const auto limit = [&](LinkUse use) { return link_limit(job.cluster, ranks, use); };
  const auto one = [&](LinkUse use, const char* way) {
    const LinkLimit of = limit(use);
    return fmt::format("{} {}{} ({}: {})", format_bandwidth(of.rate), way, shared, of.figure, of.source);
  };
  if (both_ways(plan.candidate.policy)) return one(LinkUse::both_ways, "both ways together");
  const CopyTimes times = copy_times(plan, path);
  if (!times.alike()) return times.in > times.out ? one(LinkUse::to_device, "in") : one(LinkUse::to_host, "out");
  const LinkLimit in = limit(LinkUse::to_device);
  const LinkLimit out = limit(LinkUse::to_host);
  return fmt::format("in and out by turns, {} in and {} out{} ({}: {}; {}: {})", format_bandwidth(in.rate),
                     format_bandwidth(out.rate), shared, in.figure, in.source, out.figure, out.source);
}

/// Adam's own rate where Adam takes most of the kernels' time.
std::string memory_figure(const Job& job, const Plan& plan, const std::vector<PathOp>& path) {
  std::map<Work, Ticks> times;
  for (const PathOp& step : path) {
    const Op& op = plan.ops[step.op.index];
    if (op.kind == OpKind::kernel) times[op.work] += step.end - step.start;
  }
  const auto most =
      std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const Gpu& gpu = job.cluster.gpu;
  const auto figure = [](const char* key, const Sourced<BytesPerSecond>& rate) {
    return fmt::format("{} ({}: {})", format_bandwidth(rate.value), key, rate.source);
  };
  if (most == times.end()) return figure("gpu.hbm", gpu.hbm);
  if (most->first == Work::adam) return figure("gpu.adam", gpu.adam);
  if (most->first == Work::adam_foreach) return figure("gpu.adam_foreach", gpu.adam_foreach);
  return figure("gpu.hbm", gpu.hbm);
}

std::string collective_figure(const Job& job, const Plan& plan, const std::vector<PathOp>& path) {
  Ticks inside{0};
  Ticks between{0};
  for (const PathOp& step : path) {
    const Op& op = plan.ops[step.op.index];
    if (op.kind == OpKind::collective) (op.domains > 1 ? between : inside) += step.time();
  }
  const Interconnect& wires = job.cluster.interconnect;
  if (between > inside)
    return fmt::format("{} a GPU between hosts (interconnect.network: {})", format_bandwidth(wires.network.value),
                       wires.network.source);
  return fmt::format("{} a GPU inside a host (interconnect.nvlink: {})", format_bandwidth(wires.nvlink.value),
                     wires.nvlink.source);
}

std::string microseconds(const char* key, const Sourced<Seconds>& cost) {
  return fmt::format("{} each ({}: {})", format_seconds(cost.value), key, cost.source);
}

/// The host's work that takes most: Adam there, a framework's work a chunk, synchronising, or issuing calls.
std::string host_figure(const Job& job, const Plan& plan, const std::vector<PathOp>& path) {
  enum class Part : std::uint8_t { adam, chunk, scan, wait, issue };
  std::map<Part, Ticks> times;
  for (const PathOp& step : path) {
    const Op& op = plan.ops[step.op.index];
    times[Part::issue] += step.wait == Wait::peers ? Ticks{0} : step.waited;
    if (op.kind == OpKind::host_wait) times[Part::wait] += step.end - step.start;
    if (op.kind != OpKind::host_work) continue;
    const Part part = op.work == Work::cpu_adam      ? Part::adam
                      : op.work == Work::tensor_scan ? Part::scan
                      : op.work == Work::launch      ? Part::issue
                                                     : Part::chunk;
    times[part] += step.end - step.start;
  }
  const auto most =
      std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const Calls& calls = job.cluster.calls;
  switch (most->first) {
    case Part::adam:
      return fmt::format("Adam there at {} for all GPUs of a host (host.cpu_adam: {})",
                         format_bandwidth(job.cluster.host.cpu_adam.value), job.cluster.host.cpu_adam.source);
    case Part::chunk:
      return "a framework's work a chunk at " + microseconds("calls.chunk", calls.chunk);
    case Part::scan:
      return "scans of the parameter list at " + microseconds("calls.tensor_scan", calls.tensor_scan);
    case Part::wait:
      return "synchronisation at " + microseconds("calls.synchronize", calls.synchronize);
    case Part::issue:
      return "launches and copies at " + microseconds("calls.launch", calls.launch);
  }
  return "";
}

std::string figure_of(Resource resource, const Job& job, const RankModel& rank, const Plan& plan,
                      const std::vector<PathOp>& path) {
  switch (resource) {
    case Resource::compute:
      return compute_figure(job, rank);
    case Resource::link:
      return link_figure(job, plan, path);
    case Resource::device_memory:
      return memory_figure(job, plan, path);
    case Resource::collectives:
      return collective_figure(job, plan, path);
    case Resource::host:
      return host_figure(job, plan, path);
  }
  return "";
}

std::string subject_of(Resource resource) {
  switch (resource) {
    case Resource::compute:
      return "forward and backward computation";
    case Resource::link:
      return "the link between host and device";
    case Resource::device_memory:
      return "device memory";
    case Resource::collectives:
      return "communication between ranks";
    case Resource::host:
      return "the host";
  }
  return "";
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

}  // namespace

reports::Bottleneck bottleneck_of(const Job& job, const RankModel& rank, const Plan& plan,
                                  const std::vector<PathOp>& path) {
  const auto times = by_resource(plan, path);
  Ticks sum{0};
  for (const Ticks time : times) sum += time;
  const auto most = [&](bool with_compute) {
    std::size_t best = with_compute ? 0 : 1;
    for (std::size_t i = best; i < times.size(); ++i)
      if (times[i] > times[best]) best = i;
    return best;
  };
  const auto clause = [&](std::size_t i) { return figure_of(kResources[i], job, rank, plan, path); };
  const std::size_t top = most(true);
  reports::Bottleneck result{std::string(name_of(kResources[top])), to_seconds(times[top]), ""};
  if (sum == Ticks{0}) return result;
  result.sentence = fmt::format("{} takes {:.1f} % of the step ({}), {}", capitalized(subject_of(kResources[top])),
                                100 * static_cast<double>(times[top].value) / static_cast<double>(sum.value),
                                format_seconds(to_seconds(times[top])), clause(top));
  const std::size_t next = most(false);
  if (kResources[top] == Resource::compute && times[next] > Ticks{0})
    result.sentence += fmt::format("; of the rest, {} takes most ({}), {}", subject_of(kResources[next]),
                                   format_seconds(to_seconds(times[next])), clause(next));
  result.sentence += ".";
  return result;
}

}  // namespace ebb
