// Chrome's trace event format: one JSON object an event, one a line. Source: "Trace Event Format" of the Chromium
// project: X a slice with its duration, C a counter, s and f the two ends of an arrow, M a name; times in microseconds.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "models/json_fields.hpp"
#include "reports/trace_formats.hpp"
#include "reports/trace_process.hpp"

namespace ebb::reports {

namespace {

/// Microseconds, exactly: three digits behind the point are nanoseconds.
std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string quoted_text(std::string_view text) { return dump(Json(text)); }

class Writer {
 public:
  void process(const TracedPlan& part) {
    const TraceProcess process = trace_process(*part.plan, *part.timeline, next_flow_);
    const int pid = next_id_++;
    const int first_track = next_id_;
    next_id_ += static_cast<int>(process.tracks.size());
    name("process", pid, pid, process.name);
    for (std::size_t k = 0; k < process.tracks.size(); ++k)
      name("thread", pid, first_track + static_cast<int>(k), process.tracks[k]);
    for (const TraceCounter& counter : process.counters)
      for (const TraceSample& sample : counter.samples)
        add(R"("ph": "C", "pid": {}, "name": {}, "ts": {}, "args": {{"bytes": {}}})", pid, quoted_text(counter.name),
            microseconds(sample.ns), sample.bytes.value);
    for (std::uint32_t i = 0; i < process.slices.size(); ++i)
      slice(part, i, process.slices[i], pid, first_track + static_cast<int>(process.slices[i].track));
  }

  std::string take(const std::string& made_by) {
    return fmt::format(
        "{{\n\"displayTimeUnit\": \"ms\",\n\"otherData\": {{\"made_by\": {}}},\n\"traceEvents\": [{}\n]\n}}\n",
        quoted_text(made_by), events_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> event, Args&&... args) {
    events_ += events_.empty() ? "\n{" : ",\n{";
    fmt::format_to(std::back_inserter(events_), event, std::forward<Args>(args)...);
    events_ += '}';
  }

  void name(std::string_view what, int pid, int tid, const std::string& text) {
    add(R"("ph": "M", "pid": {}, "tid": {}, "name": "{}_name", "args": {{"name": {}}})", pid, tid, what,
        quoted_text(text));
  }

  void slice(const TracedPlan& part, std::uint32_t id, const TraceSlice& slice, int pid, int tid) {
    const Op& op = part.plan->ops[id];
    Json arguments;
    for_each_argument(
        *part.plan, *part.timeline, id, [&](const char* key, std::string_view value) { arguments[key] = value; },
        [&](const char* key, std::int64_t value) { arguments[key] = value; });
    add(R"("ph": "X", "pid": {}, "tid": {}, "name": "{}", "cat": "{}", "ts": {}, "dur": {}, "args": {})", pid, tid,
        slice_name(op), name_of(op.phase), microseconds(slice.begin_ns), microseconds(slice.end_ns - slice.begin_ns),
        dump(arguments));
    // Both ends at the begin of their slice: there it is the one that viewers find on the track.
    for (const std::uint64_t flow : slice.flows_out)
      add(R"("ph": "s", "pid": {}, "tid": {}, "id": {}, "name": "after", "cat": "dependency", "ts": {})", pid, tid,
          flow, microseconds(slice.begin_ns));
    for (const std::uint64_t flow : slice.flows_in)
      add(R"("ph": "f", "bp": "e", "pid": {}, "tid": {}, "id": {}, "name": "after", "cat": "dependency", "ts": {})",
          pid, tid, flow, microseconds(slice.begin_ns));
  }

  std::string events_;
  int next_id_ = 1;
  std::uint64_t next_flow_ = 1;
};

}  // namespace

std::string chrome_trace(std::span<const TracedPlan> parts, const std::string& made_by) {
  Writer writer;
  for (const TracedPlan& part : parts) writer.process(part);
  return writer.take(made_by);
}

}  // namespace ebb::reports
