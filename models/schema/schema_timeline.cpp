// The schema of a timeline file (models/timeline_file.cpp reads it).
#include "models/plan_json_parts.hpp"
#include "models/schema/schema_parts.hpp"
#include "models/timeline_file.hpp"

namespace ebb::schema {

namespace {

using json_parts::kMost32;

/// 46 days, as the reader has it.
constexpr std::int64_t kMostTicks = 4'000'000 * kTicksPerSecond;

Json ticks(std::string_view description) { return integer(description, 0, kMostTicks); }

Json memory_schema() {
  return object("Bytes on the device and the host.",
                {{"live_peak", integer("Highest live device bytes, in the order of issue."), required},
                 {"live_by_phase",
                  list("... of each phase, in order of appearance.",
                       object("", {{"phase", names<Phase>("A phase.", kPhaseCount), required},
                                   {"bytes", integer("Its highest live bytes."), required}})),
                  required},
                 {"pinned", integer("Pinned host bytes at the peak of host memory."), required},
                 {"pageable", integer("Pageable host bytes there."), required},
                 {"torch_allocated_peak", integer("Measured: what torch.cuda.max_memory_allocated() would say.")},
                 {"torch_reserved_peak", integer("Measured: the same of reserved bytes.")},
                 {"driver_peak", integer("Measured: used according to the driver, context included.")},
                 {"instruments", integer("Measured: the replay's own device memory, in driver_peak alone.")}});
}

Json ops_schema() {
  return list(
      "By op id of the plan; measured: of the repeat with the median step.",
      object("", {{"kind", names<OpKind>("What it is.", json_parts::kOpKinds), required},
                  {"phase", names<Phase>("Which phase it belongs to.", kPhaseCount), required},
                  {"stream", names<StreamKind>("What kind of stream it ran on.", json_parts::kStreamKinds), required},
                  {"work", names<Work>("What it does.", json_parts::kWorks)},
                  {"chunk", integer("Which chunk it works on.", 0, kMost32)},
                  {"calls", integer("Pieces, launches or repetitions (1).", 0, kMost32)},
                  {"members", integer("Ranks of a collective (1).", 1, kMost32)},
                  {"domains", integer("NVLink domains they are spread over (1).", 1, kMost32)},
                  {"bytes", integer("Bytes that it moves.")},
                  {"start_ps", ticks("Picoseconds from the start of the step."), required},
                  {"end_ps", ticks("Picoseconds from the start of the step."), required}}));
}

Json non_empty(Json list) {
  list["minItems"] = 1;
  return list;
}

}  // namespace

std::string timeline_document() {
  const Json rank = object(
      "One rank.",
      {{"rank", integer("Global rank.", 0, kMost32), required},
       {"steps_ps", non_empty(list("The whole step of each repeat; predicted: one.", ticks("Picoseconds."))), required},
       {"updates_ps", non_empty(list("... its optimizer step.", ticks("Picoseconds."))), required},
       {"memory", memory_schema(), required},
       {"ops", ops_schema(), required}});
  Json digest = text("Of the plans that ran: 16 hexadecimal digits.");
  digest["pattern"] = "^[0-9a-f]{16}$";
  return document(
      "timeline", kTimelineJsonVersion, "Timeline of Ebb",
      object("When each op of a plan ran: predicted by ebb (--timeline) or measured by ebb-replay run (-o).",
             {{"format", constant("ebb-timeline"), required},
              {"version", constant(kTimelineJsonVersion), required},
              {"source", names<TimelineSource>("", 2), required},
              {"job", text("Name of the job."), required},
              {"candidate", candidate_schema(), required},
              {"plan_digest", digest, required},
              {"cluster", text("Predicted: whose figures."), required},
              {"provenance",
               list("Device, driver, date and what else a run knows.",
                    fixed_list("", {text("Its name."), text("Its value.")})),
               required},
              {"ranks", non_empty(list("Ascending.", rank)), required}}));
}

}  // namespace ebb::schema
