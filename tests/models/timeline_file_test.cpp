// Timeline files survive JSON bit for bit and are the same bytes for the same content; what is damaged is refused with
// the path of what is wrong; the digest tells plans apart in what a replay does and in nothing else.
#include "models/timeline_file.hpp"

#include <algorithm>
#include <functional>
#include <random>

#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/models/mutate.hpp"

using namespace ebb;

namespace {

/// A file that uses every field.
TimelineFile small_file() {
  TimelineFile file;
  file.source = TimelineSource::measured;
  file.job = "a \"job\"";
  file.candidate = {.policy = Policy::pipelined, .chunk_numel = {1000}, .fraction = 0.1, .slots = 2};
  file.plan_digest = "0123456789abcdef";
  file.cluster = "hgx-h200";
  file.provenance = {{"device", "NVIDIA H200"}, {"driver", "580.1"}, {"device", "again"}};
  RankTimeline rank;
  rank.rank = 3;
  rank.ops.push_back({.kind = OpKind::copy_h2d,
                      .phase = Phase::step,
                      .stream = StreamKind::h2d,
                      .chunk = 0,
                      .calls = 6,
                      .bytes = {12000},
                      .start = {5},
                      .end = {9}});
  rank.ops.push_back({.kind = OpKind::collective,
                      .phase = Phase::finalize,
                      .work = Work::reduce_scatter,
                      .stream = StreamKind::comm,
                      .members = 16,
                      .domains = 2,
                      .bytes = {4000},
                      .start = {9},
                      .end = {3'900'000'000'000'000'000}});
  rank.steps = {{70}, {80}, {75}};
  rank.updates = {{7}, {8}, {6}};
  rank.memory = {.live_peak = {100},
                 .live_by_phase = {{Phase::forward, {90}}, {Phase::step, {100}}},
                 .pinned = {64},
                 .pageable = {32},
                 .torch_allocated_peak = Bytes{512},
                 .torch_reserved_peak = Bytes{2 << 20},
                 .driver_peak = Bytes{3 << 20},
                 .instruments = Bytes{1}};
  file.ranks = {rank, rank};
  file.ranks[1].rank = 4;
  file.ranks[1].memory.driver_peak.reset();
  file.ranks[1].memory.torch_allocated_peak = Bytes{0};
  return file;
}

std::string error_with(const std::string& old_text, const std::string& new_text) {
  std::string text = to_json(small_file());
  const std::size_t at = text.find(old_text);
  REQUIRE(at != std::string::npos);
  text.replace(at, old_text.size(), new_text);
  return error_of([&] { timeline_file_from_json(text, "t.json"); });
}

/// One chunk in, Adam, out, on three streams.
Plan small_plan() {
  Plan plan;
  plan.job = "a job";
  plan.rank = 7;
  plan.shards = {{"weight", {600}, {424}}};
  plan.buckets = {{{0}, {1024}, false}};
  plan.streams = {{"host", StreamKind::host}, {"h2d", StreamKind::h2d}, {"compute", StreamKind::compute}};
  plan.buffers = {{"slot", Memory::device, {12000}, false, Phase::step, Role::state, kAllState, {0, 1000}, {}, true},
                  {"state", Memory::pinned, {20000}, true},
                  {"moments", Memory::pageable, {700}, true},
                  {"params", Memory::device, {2000}, true}};
  plan.deps = {{1}, {2}};
  plan.ops = {
      {.kind = OpKind::compute, .phase = Phase::forward, .stream = {2}, .duration = {1000}},
      {.kind = OpKind::allocate, .phase = Phase::step, .stream = {2}, .buffer = {0}},
      {.kind = OpKind::copy_h2d,
       .phase = Phase::step,
       .states = kAllState,
       .stream = {1},
       .deps_begin = 0,
       .deps_count = 1,
       .buffer = {0},
       .bytes = {12000},
       .range = {0, 1000}},
      {.kind = OpKind::kernel,
       .phase = Phase::step,
       .work = Work::adam,
       .stream = {2},
       .deps_begin = 1,
       .deps_count = 1,
       .buffer = {0},
       .bytes = {28000},
       .range = {0, 1000}},
      {.kind = OpKind::release, .phase = Phase::step, .stream = {2}, .buffer = {0}},
      {.kind = OpKind::host_work, .phase = Phase::step, .work = Work::chunk_overhead, .stream = {0}, .duration = {77}}};
  return plan;
}

std::string digest_after(const std::function<void(Plan&)>& change) {
  Plan plan = small_plan();
  change(plan);
  return digest_of(std::span(&plan, 1));
}

}  // namespace

TEST_CASE("a timeline file survives JSON") {
  const TimelineFile file = small_file();
  const std::string text = to_json(file);
  const TimelineFile again = timeline_file_from_json(text, "t.json");
  REQUIRE(again.source == file.source);
  REQUIRE(again.job == file.job);
  REQUIRE(again.candidate == file.candidate);
  REQUIRE(again.plan_digest == file.plan_digest);
  REQUIRE(again.cluster == file.cluster);
  REQUIRE(again.provenance == file.provenance);
  REQUIRE(again.ranks == file.ranks);
  REQUIRE(to_json(again) == text);
}

TEST_CASE("an op is one line, defaults left out") {
  REQUIRE(to_json(small_file())
              .find("\n{\"kind\":\"copy-h2d\",\"phase\":\"step\",\"stream\":\"h2d\",\"chunk\":0,\"calls\":6,"
                    "\"bytes\":12000,\"start_ps\":5,\"end_ps\":9},\n") != std::string::npos);
}

TEST_CASE("a damaged timeline file is refused with the path of what is wrong") {
  REQUIRE(error_with("ebb-timeline", "ebb-plan") == "t.json: format: this is not an ebb-timeline");
  REQUIRE(error_with("\"version\": 2", "\"version\": 1") ==
          "t.json: version: version 1 is not read, only 2; write it again with this ebb");
  REQUIRE(error_with("\"rank\": 4", "\"rank\": 3") == "t.json: ranks[1]: ranks are not ascending");
  REQUIRE(error_with("\"end_ps\":9", "\"end_ps\":4") == "t.json: ranks[0].ops[0].end_ps: the op ends before it starts");
  REQUIRE(error_with("\"start_ps\":5", "\"start_ps\":-5").starts_with("t.json: ranks[0].ops[0].start_ps: expected "));
  REQUIRE(error_with("\"end_ps\":3900000000000000000", "\"end_ps\":9000000000000000000")
              .starts_with("t.json: ranks[0].ops[1].end_ps: expected a whole number"));
  REQUIRE(error_with("copy-h2d", "copy-h2b") ==
          "t.json: ranks[0].ops[0].kind: unknown word \"copy-h2b\"; did you mean \"copy-h2d\"?");
  REQUIRE(error_with("[70,80,75]", "[]") == "t.json: ranks[0].steps_ps: no step in it");
  REQUIRE(error_with("[70,80,75]", "[70,80]") == "t.json: ranks[0].updates_ps: not as many as steps_ps");
  REQUIRE(error_with("measured", "predicted") == "t.json: ranks[0].steps_ps: a prediction has one step");
  REQUIRE(error_with("0123456789abcdef", "0123456789abcdeg") == "t.json: plan_digest: expected 16 hexadecimal digits");
  REQUIRE(error_with("[\"driver\",\"580.1\"]", "[\"driver\"]") == "t.json: provenance[1]: expected [name, value]");
  REQUIRE(error_with("{\"phase\":\"step\",\"bytes\":100}", "{\"phase\":\"forward\",\"bytes\":100}") ==
          "t.json: ranks[0].memory.live_by_phase[1].phase: this phase is there already");
  REQUIRE(error_with("torch_reserved_peak", "torch_reserved_peek") ==
          "t.json: ranks[0].memory: unknown key \"torch_reserved_peek\"; did you mean \"torch_reserved_peak\"?");
  REQUIRE(error_of([] { timeline_file_from_json("[]", "t"); }) == "t: the document: expected an object, found array");
  REQUIRE(error_of([] { timeline_file_from_json(std::string(300'000, '{'), "t"); }).find("not valid JSON") !=
          std::string::npos);
}

TEST_CASE("no mutation of a timeline file does anything but load or be refused") {
  const std::string good = to_json(small_file());
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = test::mutate(good, random);
    if (!error_of([&] { to_json(timeline_file_from_json(text, "t.json")); }).empty()) ++refused;
  }
  REQUIRE(refused > 10'000);
}

TEST_CASE("the digest tells plans apart in what a replay does") {
  const std::string same = digest_after([](Plan&) {});
  REQUIRE(same.size() == 16);
  REQUIRE(same.find_first_not_of("0123456789abcdef") == std::string::npos);
  REQUIRE(digest_after([](Plan& p) { p.job = "another"; }) == same);
  REQUIRE(digest_after([](Plan& p) { p.ops[0].duration = {1}; }) == same);
  REQUIRE(digest_after([](Plan& p) { p.ops[5].duration = {0}; }) == same);

  const std::vector<std::function<void(Plan&)>> changes = {
      [](Plan& p) { p.rank = 8; },
      [](Plan& p) { p.deps[1] = {1}; },
      [](Plan& p) { p.ops[3].deps_count = 0; },
      [](Plan& p) { p.ops[2].range.end = 999; },
      [](Plan& p) { p.ops[2].bytes = {11999}; },
      [](Plan& p) { p.ops[3].work = Work::adam_foreach; },
      [](Plan& p) { p.ops[4].after = {2}; },
      [](Plan& p) { p.buffers[0].packed = false; },
      [](Plan& p) { p.shards[0].at = {425}; },
      [](Plan& p) { p.buckets[0].expert = true; },
      [](Plan& p) { p.streams[1].kind = StreamKind::d2h; },
      [](Plan& p) { p.precision.master = Dtype::fp16; },
      [](Plan& p) { p.ops.pop_back(); },
  };
  std::vector<std::string> digests = {same};
  for (const auto& change : changes) digests.push_back(digest_after(change));
  std::sort(digests.begin(), digests.end());
  REQUIRE(std::unique(digests.begin(), digests.end()) == digests.end());

  const std::vector<Plan> two = {small_plan(), small_plan()};
  REQUIRE(digest_of(two) != same);
}

TEST_CASE("a rank's timeline: spans of the plan, step and optimizer step, live bytes phase by phase") {
  const Plan plan = small_plan();
  const Timeline timeline{TimelineSource::predicted,
                          {{0}, {1000}, {1000}, {1500}, {1900}, {1000}},
                          {{1000}, {1000}, {1500}, {1900}, {1900}, {1077}}};
  const RankTimeline rank = rank_timeline(plan, timeline);
  REQUIRE(rank.rank == 7);
  REQUIRE(rank.steps == std::vector<Ticks>{{1900}});
  REQUIRE(rank.updates == std::vector<Ticks>{{900}});
  REQUIRE(rank.memory.live_peak == Bytes{14000});
  REQUIRE(rank.memory.live_by_phase ==
          std::vector<std::pair<Phase, Bytes>>{{Phase::forward, {2000}}, {Phase::step, {14000}}});
  REQUIRE(rank.memory.pinned == Bytes{20000});
  REQUIRE(rank.memory.pageable == Bytes{700});
  REQUIRE_FALSE(rank.memory.driver_peak);
  REQUIRE(rank.ops.size() == 6);
  REQUIRE(rank.ops[2] == OpSpan{.kind = OpKind::copy_h2d,
                                .phase = Phase::step,
                                .stream = StreamKind::h2d,
                                .bytes = {12000},
                                .start = {1000},
                                .end = {1500}});
  REQUIRE(rank.ops[3].work == Work::adam);
}
