// Proves that what a page draws of a step is the step: every op that takes time once, on a lane where nothing overlaps,
// and memory whose highest point is that of the summary of the same plan and timeline.
#include "planner/html_timeline.hpp"

#include <algorithm>
#include <set>

#include "models/job_yaml.hpp"
#include "planner/host_plans.hpp"
#include "tests/catch.hpp"

namespace ebb {
namespace {

OpSpan op(StreamKind stream, OpKind kind, std::int64_t start, std::int64_t end) {
  OpSpan span;
  span.stream = stream;
  span.kind = kind;
  span.start = {start};
  span.end = {end};
  return span;
}

Bytes highest(const std::vector<reports::HtmlLevel>& levels) {
  Bytes most{0};
  for (const reports::HtmlLevel& level : levels) most = std::max(most, level.bytes);
  return most;
}

void check_lanes(const reports::HtmlTimeline& timeline) {
  for (std::size_t i = 1; i < timeline.spans.size(); ++i) {
    const reports::HtmlSpan& before = timeline.spans[i - 1];
    const reports::HtmlSpan& span = timeline.spans[i];
    if (before.stream == span.stream && before.lane == span.lane) CHECK(before.end <= span.start);
  }
}

}  // namespace

TEST_CASE("html timeline: overlapping ops of one kind of stream share no lane; what takes no time is left out") {
  RankTimeline rank;
  rank.rank = 3;
  rank.ops = {op(StreamKind::comm, OpKind::collective, 0, 10),  op(StreamKind::comm, OpKind::collective, 5, 15),
              op(StreamKind::comm, OpKind::collective, 10, 20), op(StreamKind::compute, OpKind::compute, 0, 30),
              op(StreamKind::compute, OpKind::allocate, 0, 1),  op(StreamKind::compute, OpKind::compute, 30, 30)};
  rank.ops[0].work = rank.ops[1].work = rank.ops[2].work = Work::all_gather;
  rank.memory.live_by_phase = {{Phase::forward, 7_GiB}};
  const reports::HtmlTimeline timeline = html_timeline(rank, "a file");
  REQUIRE(timeline.spans.size() == 4);
  check_lanes(timeline);
  CHECK(timeline.spans[0].stream == reports::HtmlStream::compute);  // as the page has them, not as the ops come
  const auto lane_of = [&](std::uint32_t id) {
    return std::find_if(timeline.spans.begin(), timeline.spans.end(), [&](const auto& s) { return s.op == id; })->lane;
  };
  CHECK(lane_of(0) == 0);
  CHECK(lane_of(1) == 1);
  CHECK(lane_of(2) == 0);
  CHECK(timeline.by_phase);
  CHECK(highest(timeline.device) == 7_GiB);
  CHECK(timeline.step == Ticks{30});
}

TEST_CASE("html timeline: every op of a plan once, and its memory") {
  const Job job = load_job(EBB_SOURCE_DIR "/models/jobs/measured-1.8b-1xh200.yaml");
  const Candidate candidate{.policy = Policy::chunked, .chunk_numel = {100'000'000}};
  const HostPlans host = host_plans(job, candidate);
  const Plan& plan = host.plans.front();
  const RankTimeline rank = rank_timeline(plan, host.timelines.front());
  const reports::HtmlTimeline timeline = html_timeline(plan, rank, "simulated");
  check_lanes(timeline);
  std::set<std::uint32_t> ids;
  for (const reports::HtmlSpan& span : timeline.spans) {
    ids.insert(span.op);
    CHECK(span.start == rank.ops[span.op].start);
    CHECK(span.end == rank.ops[span.op].end);
    CHECK(span.bytes == rank.ops[span.op].bytes);
  }
  CHECK(ids.size() == timeline.spans.size());
  const auto timed = std::count_if(rank.ops.begin(), rank.ops.end(), [](const OpSpan& o) {
    return o.kind != OpKind::allocate && o.kind != OpKind::release && o.end > o.start;
  });
  CHECK(static_cast<std::size_t>(timed) == timeline.spans.size());

  const StepSummary summary = summarize(plan, host.timelines.front());
  CHECK(highest(timeline.device) == summary.peak_allocated);
  CHECK(highest(timeline.pinned) == summary.pinned);
  // Thinned to few points, the highest stays.
  CHECK(highest(html_timeline(plan, rank, "simulated", 40).device) == summary.peak_allocated);
  CHECK(html_timeline(plan, rank, "simulated", 40).device.size() <= 42);
  CHECK(timeline.step == summary.total);
}

}  // namespace ebb
