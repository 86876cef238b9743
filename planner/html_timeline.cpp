#include "planner/html_timeline.hpp"

#include <algorithm>
#include <array>

#include "models/errors.hpp"
#include "planner/diff_exposure.hpp"
#include "planner/life.hpp"

namespace ebb {

namespace {

using reports::HtmlFamily;
using reports::HtmlKind;
using reports::HtmlLevel;
using reports::HtmlSpan;
using reports::HtmlStream;
using reports::HtmlTimeline;

HtmlStream stream_of(StreamKind kind) {
  switch (kind) {
    case StreamKind::compute:
      return HtmlStream::compute;
    case StreamKind::h2d:
      return HtmlStream::h2d;
    case StreamKind::d2h:
      return HtmlStream::d2h;
    case StreamKind::comm:
      return HtmlStream::comm;
    case StreamKind::host:
      return HtmlStream::host;
  }
  return HtmlStream::compute;
}

HtmlFamily family_of(OpClass cls) {
  if (cls == OpClass::compute) return HtmlFamily::compute;
  if (cls == OpClass::copies_in) return HtmlFamily::copy_in;
  if (cls == OpClass::copies_out) return HtmlFamily::copy_out;
  if (cls >= OpClass::all_gather && cls <= OpClass::all_to_all) return HtmlFamily::collective;
  if (cls >= OpClass::adam && cls <= OpClass::norm_clip) return HtmlFamily::kernel;
  return cls == OpClass::none ? HtmlFamily::waiting : HtmlFamily::host;
}

std::string kind_name(const OpSpan& op, OpClass cls) {
  if (cls == OpClass::none) return "waits";
  if (cls == OpClass::compute) return std::string(name_of(op.phase));
  return std::string(name_of(cls));
}

/// The place of `value` in `known`, where it is added if need be.
template <class T, class Same>
std::uint8_t place_in(std::vector<T>& known, const T& value, Same same) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const T& other) { return same(other, value); });
  if (found == known.end()) {
    EBB_ASSERT(known.size() < 256);
    known.push_back(value);
    return static_cast<std::uint8_t>(known.size() - 1);
  }
  return static_cast<std::uint8_t>(found - known.begin());
}

bool takes_time(const OpSpan& op) {
  return op.kind != OpKind::allocate && op.kind != OpKind::release && op.end > op.start;
}

/// Ops of one kind of stream may overlap where there are several such streams: each goes to the first lane that is
/// free. A file whose ops overlap more often than so many streams explain has them on the last lane.
constexpr std::size_t kMostLanes = 16;

void assign_lanes(std::vector<HtmlSpan>& spans) {
  std::array<std::vector<Ticks>, reports::kHtmlStreams> free_from;
  for (HtmlSpan& span : spans) {
    auto& lanes = free_from[static_cast<std::size_t>(span.stream)];
    std::size_t lane = 0;
    while (lane < lanes.size() && lanes[lane] > span.start) ++lane;
    lane = std::min(lane, kMostLanes - 1);
    if (lane == lanes.size()) lanes.push_back({});
    lanes[lane] = std::max(lanes[lane], span.end);
    span.lane = static_cast<std::uint8_t>(lane);
  }
}

void sort_by_lane(std::vector<HtmlSpan>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const HtmlSpan& a, const HtmlSpan& b) {
    return a.stream != b.stream ? a.stream < b.stream : a.lane < b.lane;
  });
}

void add_spans(HtmlTimeline& timeline, const std::vector<OpSpan>& ops) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpSpan& op = ops[i];
    if (!takes_time(op)) continue;
    const OpClass cls = class_of(op);
    HtmlSpan span;
    span.op = static_cast<std::uint32_t>(i);
    span.stream = stream_of(op.stream);
    span.kind = place_in(timeline.kinds, HtmlKind{kind_name(op, cls), family_of(cls)},
                         [](const HtmlKind& a, const HtmlKind& b) { return a.name == b.name && a.family == b.family; });
    span.phase = place_in(timeline.phases, std::string(name_of(op.phase)), std::equal_to<>());
    span.chunk = op.chunk == kNoChunk ? -1 : static_cast<std::int64_t>(op.chunk);
    span.bytes = op.bytes;
    span.start = op.start;
    span.end = op.end;
    timeline.spans.push_back(span);
    timeline.step = std::max(timeline.step, op.end);
  }
  timeline.ops = timeline.spans.size();
  std::stable_sort(timeline.spans.begin(), timeline.spans.end(),
                   [](const HtmlSpan& a, const HtmlSpan& b) { return a.start < b.start; });
  assign_lanes(timeline.spans);
  sort_by_lane(timeline.spans);
}

/// A change of what is alive.
struct Change {
  Ticks at{0};
  Memory memory = Memory::device;
  Bytes bytes{0};
};

/// In time order; at one tick in the order of ops, as summarize() has them.
std::vector<Change> changes_of(const Plan& plan, const std::vector<OpSpan>& ops) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind != OpKind::allocate && op.kind != OpKind::release) continue;
    const Buffer& buffer = plan.buffers[op.buffer.index];
    if (op.kind == OpKind::allocate)
      changes.push_back({ops[i].start, buffer.memory, buffer.bytes});
    else
      changes.push_back({ops[i].end, buffer.memory, {-buffer.bytes.value}});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
  return changes;
}

std::vector<HtmlLevel> levels_of(const Plan& plan, const std::vector<Change>& changes, Memory memory, Ticks end,
                                 std::size_t most) {
  Bytes alive{0};
  for (const Buffer& buffer : plan.buffers)
    if (buffer.initial && buffer.memory == memory) alive += buffer.bytes;
  std::vector<CurvePoint> curve = {{{0}, alive}};
  for (const Change& change : changes) {
    if (change.memory != memory) continue;
    alive += change.bytes;
    curve.push_back({to_seconds(change.at), alive});
  }
  curve.push_back({to_seconds(end), alive});
  std::vector<HtmlLevel> levels;
  for (const CurvePoint& point : thinned(curve, most)) {
    const HtmlLevel level{to_ticks(point.at), point.bytes};
    if (levels.empty() || levels.back().bytes != level.bytes || &point == &curve.back()) levels.push_back(level);
  }
  if (levels.back().at < end) levels.push_back({end, alive});
  return levels;
}

void add_phase_levels(HtmlTimeline& timeline, const RankTimeline& rank) {
  timeline.by_phase = true;
  for (const auto& [phase, window] : phase_windows(rank.ops))
    for (const auto& [known, bytes] : rank.memory.live_by_phase)
      if (known == phase) timeline.device.push_back({window.begin, bytes});
  if (!timeline.device.empty()) timeline.device.push_back({timeline.step, timeline.device.back().bytes});
  timeline.pinned = {{Ticks{0}, rank.memory.pinned}, {timeline.step, rank.memory.pinned}};
  timeline.pageable = {{Ticks{0}, rank.memory.pageable}, {timeline.step, rank.memory.pageable}};
}

HtmlTimeline timeline_of(const RankTimeline& rank, const std::string& origin) {
  HtmlTimeline timeline;
  timeline.origin = origin;
  timeline.rank = rank.rank;
  add_spans(timeline, rank.ops);
  return timeline;
}

}  // namespace

HtmlTimeline html_timeline(const RankTimeline& rank, const std::string& origin) {
  HtmlTimeline timeline = timeline_of(rank, origin);
  add_phase_levels(timeline, rank);
  return timeline;
}

HtmlTimeline html_timeline(const Plan& plan, const RankTimeline& rank, const std::string& origin, std::size_t most) {
  EBB_ASSERT(plan.ops.size() == rank.ops.size());
  HtmlTimeline timeline = timeline_of(rank, origin);
  const std::vector<Change> changes = changes_of(plan, rank.ops);
  timeline.device = levels_of(plan, changes, Memory::device, timeline.step, most);
  timeline.pinned = levels_of(plan, changes, Memory::pinned, timeline.step, most);
  timeline.pageable = levels_of(plan, changes, Memory::pageable, timeline.step, most);
  return timeline;
}

const RankTimeline& slowest_of(const TimelineFile& file) {
  const auto median = [](const RankTimeline& rank) {
    std::vector<Ticks> steps = rank.steps;
    std::sort(steps.begin(), steps.end());
    return steps[steps.size() / 2];
  };
  return *std::max_element(file.ranks.begin(), file.ranks.end(),
                           [&](const RankTimeline& a, const RankTimeline& b) { return median(a) < median(b); });
}

}  // namespace ebb
