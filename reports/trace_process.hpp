// What both trace formats are written from: one plan and its timeline as tracks, slices, arrows and counters, in
// nanoseconds. Internal to the writers of traces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/plan.hpp"
#include "models/timeline.hpp"

namespace ebb::reports {

/// The nearest nanosecond, halves up.
constexpr std::int64_t to_nanoseconds(Ticks ticks) { return (ticks.value + 500) / 1000; }

struct TraceSlice {
  std::uint32_t track = 0;  // into TraceProcess::tracks
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<std::uint64_t> flows_out = {};  // arrows that begin here; ids are unique in the file
  std::vector<std::uint64_t> flows_in = {};   // ... and that end here
};

struct TraceSample {
  std::int64_t ns = 0;
  Bytes bytes{0};
};

/// A curve of memory: its value from each sample to the next. The first is at 0.
struct TraceCounter {
  std::string_view name;
  std::vector<TraceSample> samples;
};

struct TraceProcess {
  std::string name;                 // "rank 3 (predicted)", "rank 3 save (measured)"
  std::vector<std::string> tracks;  // one a stream, in the plan's order; see below
  std::vector<TraceSlice> slices;   // by op id
  std::vector<TraceCounter> counters;
};

/// Slices of one track follow each other: viewers nest what overlaps. A stream's ops do follow each other, but clocks
/// of a run may say otherwise by some nanoseconds; such an op goes to another track of that stream, "h2d (2)". Streams
/// without ops have no track. Arrows get ids from `next_flow` on, which is left at the next free one.
TraceProcess trace_process(const Plan& plan, const Timeline& timeline, std::uint64_t& next_flow);

/// What a slice is called: the work it does, else what kind of op it is (a stand-in for forward: its phase).
std::string_view slice_name(const Op& op);

/// Calls `text(key, string_view)` or `number(key, int64)` for each argument of an op's slice.
template <class Text, class Number>
void for_each_argument(const Plan& plan, const Timeline& timeline, std::uint32_t id, const Text& text,
                       const Number& number) {
  const Op& op = plan.ops[id];
  number("op", std::int64_t{id});
  text("kind", name_of(op.kind));
  text("phase", name_of(op.phase));
  if (op.chunk != kNoChunk) number("chunk", std::int64_t{op.chunk});
  if (op.bytes.value != 0) number("bytes", op.bytes.value);
  if (op.calls != 1) number("calls", std::int64_t{op.calls});
  if (op.members != 1) number("members", std::int64_t{op.members});
  if (op.buffer.valid()) text("buffer", plan.buffers[op.buffer.index].name);
  number("start_ps", timeline.start[id].value);
  number("end_ps", timeline.end[id].value);
}

}  // namespace ebb::reports
