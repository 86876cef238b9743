// Corners of traces that plans of the planner do not have: ops of one stream that overlap by a clock's error, ops
// shorter than a nanosecond, a name with quotes, an empty stream. Whole traces: tests/cli/read_trace.py.
#include "reports/trace.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;
using namespace ebb::reports;
using Json = nlohmann::json;

namespace {

Op op_on(std::uint32_t stream, OpKind kind = OpKind::kernel) {
  Op op;
  op.kind = kind;
  op.phase = Phase::step;
  op.stream = {stream};
  return op;
}

/// The events of Chrome's format with this `ph`.
std::vector<Json> events(const Plan& plan, const Timeline& timeline, const std::string& kind) {
  const TracedPlan part{&plan, &timeline};
  const Json trace = Json::parse(trace_of({&part, 1}, TraceFormat::chrome, "test \"1\""));
  CHECK(trace["otherData"]["made_by"] == "test \"1\"");
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == kind) found.push_back(event);
  return found;
}

}  // namespace

TEST_CASE("ops of one stream that overlap are on tracks of their own, each op at its time") {
  Plan plan;
  plan.streams = {{"empty", StreamKind::comm}, {"h2d", StreamKind::h2d}};
  plan.ops = {op_on(1), op_on(1), op_on(1), op_on(1)};
  const Timeline timeline{
      TimelineSource::measured, {{0}, {9'000}, {10'000}, {20'000}}, {{10'000}, {20'000}, {12'000}, {30'000}}};
  std::map<int, std::string> tracks;
  for (const Json& event : events(plan, timeline, "M"))
    if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
  CHECK(tracks.size() == 2);
  const std::vector<Json> slices = events(plan, timeline, "X");
  REQUIRE(slices.size() == 4);
  const std::vector<std::string> expected = {"h2d", "h2d (2)", "h2d", "h2d"};
  for (std::size_t i = 0; i < slices.size(); ++i) {
    CHECK(tracks[slices[i]["tid"]] == expected[i]);
    CHECK(slices[i]["args"]["start_ps"] == timeline.start[i].value);
    CHECK(slices[i]["ts"].get<double>() * 1e6 == Approx(static_cast<double>(timeline.start[i].value)));
  }
}

TEST_CASE("picoseconds become the nearest nanosecond, halves up, and no order is lost") {
  Plan plan;
  plan.streams = {{"compute", StreamKind::compute}};
  plan.ops = {op_on(0), op_on(0), op_on(0)};
  const Timeline timeline{TimelineSource::predicted, {{499}, {500}, {1'499}}, {{500}, {1'499}, {2'500}}};
  const std::vector<Json> slices = events(plan, timeline, "X");
  REQUIRE(slices.size() == 3);
  const std::vector<std::pair<double, double>> expected = {{0, 0.001}, {0.001, 0}, {0.001, 0.002}};  // microseconds
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(slices[i]["ts"].get<double>() == Approx(expected[i].first));
    CHECK(slices[i]["dur"].get<double>() == Approx(expected[i].second));
  }
  CHECK(slices[0]["tid"] == slices[1]["tid"]);
  CHECK(slices[1]["tid"] == slices[2]["tid"]);
}

TEST_CASE("memory that is handed back later is not reusable until then") {
  Plan plan;
  plan.streams = {{"host", StreamKind::host}, {"compute", StreamKind::compute}};
  plan.buffers = {{.name = "slot \"0\"", .bytes = {64}}};
  plan.ops = {op_on(0, OpKind::allocate), op_on(1), op_on(0, OpKind::release)};
  plan.ops[0].buffer = plan.ops[2].buffer = {0};
  plan.deps = {{0}};
  plan.ops[1].deps_begin = 0;
  plan.ops[1].deps_count = 1;
  plan.ops[2].after = {1};
  const Timeline timeline{TimelineSource::predicted, {{1'000}, {2'000}, {3'000}}, {{1'000}, {9'000}, {3'000}}};
  std::map<std::string, std::vector<std::pair<double, int>>> curves;
  for (const Json& event : events(plan, timeline, "C"))
    curves[event["name"]].emplace_back(event["ts"].get<double>() * 1000, event["args"]["bytes"]);
  const std::vector<std::pair<double, int>> allocated = {{0, 0}, {1, 64}, {3, 0}};
  const std::vector<std::pair<double, int>> held = {{0, 0}, {1, 64}, {9, 0}};
  CHECK(curves["device memory, allocated"] == allocated);
  CHECK(curves["device memory, not reusable"] == held);
  CHECK(curves.size() == 2);  // none of a kind of memory that the plan does not use
  CHECK(events(plan, timeline, "X")[0]["args"]["buffer"] == "slot \"0\"");
  REQUIRE(events(plan, timeline, "s").size() == 1);
  CHECK(events(plan, timeline, "s")[0]["ts"].get<double>() * 1000 == Approx(1));
  CHECK(events(plan, timeline, "f")[0]["ts"].get<double>() * 1000 == Approx(2));
}

TEST_CASE("the extension of its file says a trace's format") {
  CHECK(trace_format_of("a/b.pftrace") == TraceFormat::perfetto);
  CHECK(trace_format_of("b.json") == TraceFormat::chrome);
  for (const char* name : {"b", "b.txt", "pftrace", ""})
    CHECK(error_of([&] { trace_format_of(name); }).starts_with("--trace: a trace is a .pftrace"));
}
