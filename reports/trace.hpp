// A trace: when each op of some plans ran, for a trace viewer. One process a plan (a rank, or a part of its life), one
// track a stream, one slice an op with its phase, chunk and bytes as arguments, counters of memory, and arrows from an
// op to those on other streams that waited for it.
//
// Two formats. Perfetto's protobuf (.pftrace) is what ui.perfetto.dev and its trace processor read natively; Chrome's
// JSON (.json) is read by those and by older viewers. Both hold the same slices, counters and arrows.
//
// Trace viewers count nanoseconds, plans picoseconds (ticks): a slice begins and ends at the nearest nanosecond, halves
// up, which keeps the order of any two moments; the exact ticks are its arguments `start_ps` and `end_ps`.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "models/plan.hpp"
#include "models/timeline.hpp"
#include "models/timeline_file.hpp"

namespace ebb::reports {

enum class TraceFormat : std::uint8_t { perfetto, chrome };

/// By the extension of `path`. InputError that names `option` for anything but .pftrace and .json.
TraceFormat trace_format_of(const std::string& path, const char* option = "--trace");

/// One process of the trace. Both outlive the call; the timeline has the plan's ops.
struct TracedPlan {
  const Plan* plan = nullptr;
  const Timeline* timeline = nullptr;
};

/// The whole file. `made_by` goes into Chrome's JSON, which has a place for it.
std::string trace_of(std::span<const TracedPlan> parts, TraceFormat format, const std::string& made_by);

/// The same into `path`, in the format of its extension. IoError when it cannot be written whole.
void write_trace(std::span<const TracedPlan> parts, const std::string& path, const std::string& made_by);
/// Of plans and what was predicted or measured of each. Precondition: as many timelines as plans.
void write_trace(std::span<const Plan> plans, std::span<const Timeline> timelines, const std::string& path,
                 const std::string& made_by);

/// What a timeline file keeps of a rank, as a timeline again.
Timeline timeline_of(const RankTimeline& rank, TimelineSource source);

}  // namespace ebb::reports
