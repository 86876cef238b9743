#include "reports/trace.hpp"

#include <filesystem>
#include <vector>

#include "models/errors.hpp"
#include "models/text_output.hpp"
#include "reports/trace_formats.hpp"

namespace ebb::reports {

TraceFormat trace_format_of(const std::string& path, const char* option) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".pftrace") return TraceFormat::perfetto;
  if (extension == ".json") return TraceFormat::chrome;
  throw InputError({option}, "a trace is a .pftrace (for ui.perfetto.dev) or a .json (Chrome's format)",
                   "name it e.g. step.pftrace");
}

std::string trace_of(std::span<const TracedPlan> parts, TraceFormat format, const std::string& made_by) {
  return format == TraceFormat::perfetto ? perfetto_trace(parts) : chrome_trace(parts, made_by);
}

void write_trace(std::span<const TracedPlan> parts, const std::string& path, const std::string& made_by) {
  write_text_file(path, trace_of(parts, trace_format_of(path), made_by));
}

void write_trace(std::span<const Plan> plans, std::span<const Timeline> timelines, const std::string& path,
                 const std::string& made_by) {
  EBB_ASSERT(plans.size() == timelines.size());
  std::vector<TracedPlan> parts;
  for (std::size_t i = 0; i < plans.size(); ++i) parts.push_back({&plans[i], &timelines[i]});
  write_trace(parts, path, made_by);
}

Timeline timeline_of(const RankTimeline& rank, TimelineSource source) {
  Timeline timeline;
  timeline.source = source;
  for (const OpSpan& op : rank.ops) {
    timeline.start.push_back(op.start);
    timeline.end.push_back(op.end);
  }
  return timeline;
}

}  // namespace ebb::reports
