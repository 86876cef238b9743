// Explanations: the path covers the step without a gap, what is said about links, bounds, neighbours, shards and
// what-ifs holds when it is computed in another way.
#include "planner/explain.hpp"

#include <algorithm>
#include <numeric>

#include "models/job_yaml.hpp"
#include "planner/chunking.hpp"
#include "planner/constraints.hpp"
#include "planner/link_limit.hpp"
#include "planner/path_segments.hpp"
#include "planner/step_path.hpp"
#include "sim/copy_rates.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"
#include "tests/planner/plan_by_hand.hpp"

using namespace ebb;

namespace {

Job library_job(const std::string& name) { return load_job(EBB_SOURCE_DIR "/models/jobs/" + name + ".yaml"); }

std::optional<Answer> recommended(const Job& job) {
  const SearchResult result = search(job, {.cures = false});
  return result.recommended ? std::optional(result.candidates[*result.recommended]) : std::nullopt;
}

const reports::WhatIf& what_if(const reports::Explanation& explanation, const std::string& part) {
  const auto found = std::find_if(explanation.what_ifs.begin(), explanation.what_ifs.end(),
                                  [&](const auto& w) { return w.change.find(part) != std::string::npos; });
  REQUIRE(found != explanation.what_ifs.end());
  return *found;
}

}  // namespace

TEST_CASE("a step's path by hand: in, Adam, out, each waiting for the one before, and the host for the first") {
  test::ByHand by;
  const BufferId b = by.buffer(true);
  const OpId in = by.in(b, {0, 10});
  const OpId other = by.out(b, {20, 30});
  const OpId step = by.adam(b, {0, 10}, {in, other});
  const OpId out = by.out(b, {0, 10}, {step});
  Timeline timeline;
  timeline.start = {{5}, {0}, {50}, {60}};
  timeline.end = {{50}, {40}, {60}, {100}};
  const std::vector<PathOp> path = step_path(by.plan, timeline);
  REQUIRE(path.size() == 3);
  CHECK(path[0].op == in);
  CHECK(path[0].wait == Wait::host);  // nothing before it, and it did not start at once
  CHECK(path[0].waited == Ticks{5});
  CHECK(path[1].op == step);
  CHECK(path[1].wait == Wait::dependency);
  CHECK(path[2].op == out);
  CHECK(path[2].waited == Ticks{0});
  CHECK(step_path(Plan{}, Timeline{}).empty());
}

TEST_CASE("the path of every lowering covers its step to the tick, in order, and so do its segments and shares") {
  for (const test::RankCase& rank : test::rank_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const Plan plan = lower(rank.rank, candidate);
      const Timeline timeline = sim::simulate(plan, rank.job->cluster, {.ranks_per_host = 2});
      const Ticks total = *std::max_element(timeline.end.begin(), timeline.end.end());
      const std::vector<PathOp> path = step_path(plan, timeline);
      Ticks at{0};
      for (const PathOp& step : path) {
        CHECK(step.start == timeline.start[step.op.index]);
        CHECK(step.start - step.waited == at);  // where the one before it ended
        at = step.end;
      }
      CHECK(at == total);
      const std::vector<Segment> segments = segments_of(plan, path, 12);
      CHECK(segments.size() <= 12);
      Ticks sum{0};
      for (const Segment& segment : segments) sum += segment.time;
      CHECK(sum == total);
      const std::vector<std::int64_t> shares = thousandths_of(segments);
      CHECK(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) == 1000);
      Ticks resources{0};
      for (const Ticks time : by_resource(plan, path)) resources += time;
      CHECK(resources == total);
    }
  }
}

TEST_CASE("the two shortest segments are put together, and the others stay") {
  const test::RankCase rank = test::measured_case();
  const Plan plan = lower(rank.rank, {.policy = Policy::chunked, .chunk_numel = {400'000'000}});
  const Timeline timeline = sim::simulate(plan, rank.job->cluster, {});
  const std::vector<PathOp> path = step_path(plan, timeline);
  const std::vector<Segment> all = segments_of(plan, path, 1000);
  REQUIRE(all.size() > 4);
  const std::vector<Segment> fewer = segments_of(plan, path, all.size() - 1);
  REQUIRE(fewer.size() == all.size() - 1);
  const auto times = [](const std::vector<Segment>& list) {
    std::vector<std::int64_t> sorted;
    for (const Segment& segment : list) sorted.push_back(segment.time.value);
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  };
  std::vector<std::int64_t> expected = times(all);
  expected[1] += expected[0];
  expected.erase(expected.begin());
  std::sort(expected.begin(), expected.end());
  CHECK(times(fewer) == expected);
}

TEST_CASE("the figure that decides a link's rate is the one that is lowest, and its rate the simulator's") {
  Cluster cluster = library_job("llama3-8b-hgx-h200").cluster;
  cluster.topology = {};
  cluster.host_link.both_by_size.value.clear();
  cluster.host_link.h2d = {{50e9}, "datasheet A"};
  cluster.host_link.d2h = {{50e9}, "datasheet B"};
  cluster.host_link.both = {{90e9}, "datasheet C"};
  cluster.host_link.host_one_way = {{1e12}, "datasheet D"};
  cluster.host_link.host_both = {{1e12}, "datasheet E"};
  const LinkLimit in = link_limit(cluster, 8, LinkUse::to_device);
  CHECK(in.figure == "host_link.h2d");
  CHECK(in.source == "datasheet A");
  CHECK(in.rate.value == Approx(50e9));
  CHECK(link_limit(cluster, 8, LinkUse::both_ways).figure == "host_link.both");
  CHECK(link_limit(cluster, 8, LinkUse::both_ways).rate.value == Approx(90e9));
  cluster.host_link.host_both.value = {320e9};  // 40 a GPU
  const LinkLimit shared = link_limit(cluster, 8, LinkUse::both_ways);
  CHECK(shared.figure == "host_link.host_both");
  CHECK(shared.rate.value == Approx(40e9));
  CHECK(link_limit(cluster, 1, LinkUse::both_ways).figure == "host_link.both");
}

TEST_CASE("an explanation of the measured job under a budget that only chunks meet") {
  Job job = library_job("measured-1.8b-1xh200");
  job.budget.device = 22_GiB;
  check(job);
  const std::optional<Answer> pick = recommended(job);
  REQUIRE(pick);
  const reports::Explanation e = explain(job, *pick, pick);

  CHECK(e.step.value == Approx(pick->step.value));
  CHECK(e.segments.size() <= kMostPathSegments);
  double time = 0;
  double percent = 0;
  for (const reports::PathSegment& segment : e.segments) time += segment.time.value, percent += segment.percent;
  CHECK(time == Approx(e.step.value));
  CHECK(percent == Approx(100));
  CHECK(e.path.size() <= kMostPathOperations);
  CHECK(e.bottleneck.sentence.find(job.cluster.host_link.h2d.source) != std::string::npos);

  // Nothing is below its bounds, and none of them is trivial.
  REQUIRE(e.bounds.size() >= 2);
  for (const reports::LowerBound& bound : e.bounds) {
    INFO(bound.name);
    CHECK(bound.time.value > 0);
    CHECK(bound.time.value <= e.optimizer.value);
  }
  // All state each way at the link's own rates: 1,816,758,272 elements, one rank, alone on its host.
  if (pick->candidate.policy == Policy::chunked) {
    const sim::CopyRates rates = sim::copy_rates(job.cluster, {.ranks_per_host = 1});
    const double bytes = 12.0 * 1'816'758'272;
    CHECK(e.bounds[0].time.value ==
          Approx(std::max({bytes / rates.h2d.value, bytes / rates.d2h.value, 2 * bytes / rates.both.value})));
  }
  // Under any policy that keeps nothing on the device the peak is at least this.
  CHECK(e.memory.least > Bytes{0});
  for (const Candidate& other : {Candidate{}, Candidate{.policy = Policy::full_reload},
                                 Candidate{.policy = Policy::chunked, .chunk_numel = {1}}})
    CHECK(evaluate(job, other).device_peak >= e.memory.least);

  // One GPU owns whole parameters: the largest is the output layer's (50,304 x 2,048), and nothing on one GPU cuts it.
  CHECK(e.shard.parameter == "output_layer.weight");
  CHECK(e.shard.largest == Numel{103'022'592});
  CHECK(e.shard.levers.empty());
}

TEST_CASE("the largest shard is that of the layout, and the levers that are named lower it") {
  Job job = library_job("llama3-8b-hgx-h200");
  job.parallel.overlap_grad_reduce = job.parallel.overlap_param_gather = false;
  check(job);
  const Candidate candidate{.policy = Policy::chunked, .chunk_numel = {100'000'000}};
  const reports::ShardLimit shard = explain(job, evaluate(job, candidate), std::nullopt).shard;
  // Without buckets one rank owns the whole word embedding: 128,256 x 4,096 (megatron reference layout).
  CHECK(shard.largest == Numel{525'336'576});
  CHECK(shard.decides);
  CHECK(shard.window == bytes_of(Numel{525'336'576}, 12));
  REQUIRE(shard.levers.size() == 2);
  CHECK(shard.levers[0].argument == "--overlap-grad-reduce");
  CHECK(shard.levers[0].largest == Numel{65'667'072});  // its bucket over 8 ranks
  CHECK(shard.levers[1].argument == "--tensor-model-parallel-size 2");
  CHECK(shard.levers[1].largest < Numel{525'336'576});
}

TEST_CASE("neighbours pack differently and are no better by the rule, where the candidate is the search's") {
  Job job = library_job("measured-1.8b-1xh200");
  job.budget.device = 24_GiB;
  job.offload.policy = Policy::chunked;
  check(job);
  const std::optional<Answer> pick = recommended(job);
  REQUIRE(pick);
  const reports::Explanation e = explain(job, *pick, pick);
  REQUIRE(e.neighbours.size() >= 1);
  const std::vector<Shard> shards = [&] {
    const StageLayout stage = stage_layout(job, 0);
    return rank_shards(stage, 0, 0);
  }();
  const std::size_t chunks = chunk_by_numel(shards, pick->candidate.chunk_numel).size();
  for (const reports::Neighbour& neighbour : e.neighbours) {
    INFO(neighbour.change << ": " << neighbour.verdict);
    REQUIRE(neighbour.candidate.chunk_numel);
    const bool smaller = *neighbour.candidate.chunk_numel < pick->candidate.chunk_numel;
    CHECK(neighbour.change == (smaller ? "next smaller chunk" : "next larger chunk"));
    const std::size_t there = chunk_by_numel(shards, *neighbour.candidate.chunk_numel).size();
    CHECK((smaller ? there >= chunks : there <= chunks));
    CHECK(neighbour.verdict.find("prefers") == std::string::npos);
  }
}

TEST_CASE("what-ifs give what the changed job is recommended") {
  Job job = library_job("measured-1.8b-1xh200");
  job.budget.device = 24_GiB;
  check(job);
  const std::optional<Answer> pick = recommended(job);
  REQUIRE(pick);
  const reports::Explanation e = explain(job, *pick, pick);

  Job roomier = job;
  roomier.budget.device = Bytes{(24_GiB).value / 100 * 110};
  const std::optional<Answer> with_room = recommended(roomier);
  REQUIRE(with_room);
  const reports::WhatIf& more = what_if(e, "10 % more");
  REQUIRE(more.step);
  CHECK(more.step->value == Approx(with_room->step.value));
  CHECK(more.flags == with_room->flags);
  CHECK(more.differs == (with_room->candidate != pick->candidate));

  Job tighter = job;
  tighter.budget.device = Bytes{(24_GiB).value / 100 * 90};
  CHECK(what_if(e, "10 % less").step.has_value() == recommended(tighter).has_value());
  // The measured job says how long its own computation takes: nothing is said about another split.
  if (job.compute.step_seconds) CHECK(what_if(e, "tensor parallelism 2").note.find("measured") != std::string::npos);
  const reports::WhatIf& link = what_if(e, "twice as fast");
  REQUIRE(link.step);
  CHECK(*link.step < pick->step);
}

TEST_CASE("windowed without a limit is one chunk, the largest: only smaller ones stand beside it") {
  const Job job = library_job("measured-1.8b-1xh200");
  check(job);
  const Candidate whole{.policy = Policy::windowed, .chunk_size_mb = 0, .fraction = 0.5};
  std::int64_t smaller = 0;
  for (const reports::Neighbour& n : explain(job, evaluate(job, whole), std::nullopt).neighbours) {
    CHECK(n.change != "next larger chunk");
    if (n.change == "next smaller chunk") smaller = n.candidate.chunk_size_mb.value_or(0);
  }
  REQUIRE(smaller > 0);
  // The other way round: no limit is not below the least one, where every shard is a chunk of its own already.
  Candidate least = whole;
  least.chunk_size_mb = 1;
  std::int64_t larger = -1;
  for (const reports::Neighbour& n : explain(job, evaluate(job, least), std::nullopt).neighbours) {
    CHECK(n.change != "next smaller chunk");
    if (n.change == "next larger chunk") larger = n.candidate.chunk_size_mb.value_or(-1);
  }
  CHECK(larger > 1);
}

TEST_CASE("what-ifs keep to the Megatron asked for, and lack what the search of a plan finds lacking") {
  const Job job = library_job("llama3-8b-hgx-h200");
  check(job, Megatron::main);
  const SearchResult now = search(job, {.megatron = Megatron::main, .cures = false});
  REQUIRE(now.recommended);
  const Answer& pick = now.candidates[*now.recommended];
  const reports::Explanation e = explain(job, pick, pick, {.megatron = Megatron::main});

  // Anyone's would be windowed, which main does not have.
  const reports::WhatIf& link = what_if(e, "twice as fast");
  CHECK(link.recommendation.find("cpu-adam") != std::string::npos);
  CHECK(what_if(explain(job, pick, pick), "twice as fast").recommendation.find("windowed") != std::string::npos);

  for (const Megatron megatron : {Megatron::any, Megatron::main}) {
    Job tighter = job;
    tighter.budget.device = Bytes{device_budget_of(job).value / 100 * 90};
    const SearchResult planned = search(tighter, {.megatron = megatron, .likely = true});  // as `ebb plan`
    REQUIRE_FALSE(planned.recommended);
    CHECK(what_if(explain(job, pick, pick, {.megatron = megatron}), "10 % less").note ==
          "nothing fits: " + planned.shortfall);
  }
}
