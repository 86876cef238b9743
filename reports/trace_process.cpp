#include "reports/trace_process.hpp"

#include <fmt/format.h>

#include "models/errors.hpp"
#include "models/memory_curve.hpp"

namespace ebb::reports {

namespace {

/// A track of a stream and where it is free again.
struct Lane {
  std::uint32_t track = 0;
  std::int64_t free_ns = 0;
};

/// Each op on the first track of its stream that is free when it begins.
void place_slices(const Plan& plan, const Timeline& timeline, TraceProcess& process) {
  std::vector<std::vector<Lane>> lanes(plan.streams.size());
  // Which lane of its stream each op is on; numbered across streams once it is known how many each has.
  std::vector<std::uint32_t> lane_of(plan.ops.size());
  process.slices.resize(plan.ops.size());
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    TraceSlice& slice = process.slices[i];
    slice.begin_ns = to_nanoseconds(timeline.start[i]);
    slice.end_ns = to_nanoseconds(timeline.end[i]);
    std::vector<Lane>& own = lanes[plan.ops[i].stream.index];
    std::uint32_t lane = 0;
    while (lane < own.size() && own[lane].free_ns > slice.begin_ns) ++lane;
    if (lane == own.size()) own.push_back({});
    own[lane].free_ns = slice.end_ns;
    lane_of[i] = lane;
  }
  for (std::size_t s = 0; s < lanes.size(); ++s)
    for (std::size_t k = 0; k < lanes[s].size(); ++k) {
      lanes[s][k].track = static_cast<std::uint32_t>(process.tracks.size());
      const std::string& name = plan.streams[s].name;
      process.tracks.push_back(k == 0 ? name : fmt::format("{} ({})", name, k + 1));
    }
  for (std::size_t i = 0; i < plan.ops.size(); ++i)
    process.slices[i].track = lanes[plan.ops[i].stream.index][lane_of[i]].track;
}

/// What stands on one stream follows its order; only an arrow between streams says something.
void draw_flows(const Plan& plan, TraceProcess& process, std::uint64_t& next_flow) {
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i)
    for (const OpId dep : plan.deps_of(plan.ops[i])) {
      if (plan.ops[dep.index].stream == plan.ops[i].stream) continue;
      process.slices[dep.index].flows_out.push_back(next_flow);
      process.slices[i].flows_in.push_back(next_flow);
      ++next_flow;
    }
}

struct Curve {
  std::string_view name;
  Bytes LiveBytes::*value;
};
constexpr Curve kCurves[] = {{"device memory, allocated", &LiveBytes::allocated},
                             {"device memory, not reusable", &LiveBytes::held},
                             {"pinned host memory", &LiveBytes::pinned},
                             {"pageable host memory", &LiveBytes::pageable}};

/// The curves that are ever above nothing, with a sample at 0 and one at each change.
void sample_memory(const Plan& plan, const Timeline& timeline, TraceProcess& process) {
  std::vector<MemoryEvent> events;
  memory_events(plan, timeline, events);
  for (const Curve& curve : kCurves) {
    LiveBytes live = initial_bytes(plan);
    TraceCounter counter{curve.name, {{0, live.*curve.value}}};
    for (const MemoryEvent& event : events) {
      live.add(plan.buffers[plan.ops[event.op].buffer.index], event.what);
      const Bytes now = live.*curve.value;
      if (now != counter.samples.back().bytes) counter.samples.push_back({to_nanoseconds(event.tick), now});
    }
    if (counter.samples.size() > 1 || counter.samples.front().bytes.value != 0)
      process.counters.push_back(std::move(counter));
  }
}

}  // namespace

TraceProcess trace_process(const Plan& plan, const Timeline& timeline, std::uint64_t& next_flow) {
  EBB_ASSERT(timeline.start.size() == plan.ops.size() && timeline.end.size() == plan.ops.size());
  TraceProcess process;
  process.name = fmt::format("rank {}{}{} ({})", plan.rank, plan.part == LifePart::step ? "" : " ",
                             plan.part == LifePart::step ? "" : name_of(plan.part), name_of(timeline.source));
  place_slices(plan, timeline, process);
  draw_flows(plan, process, next_flow);
  sample_memory(plan, timeline, process);
  return process;
}

std::string_view slice_name(const Op& op) {
  if (op.work != Work::none) return name_of(op.work);
  return op.kind == OpKind::compute ? name_of(op.phase) : name_of(op.kind);
}

}  // namespace ebb::reports
