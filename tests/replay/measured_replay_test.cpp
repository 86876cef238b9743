// What was replayed on an H200 (tests/data/replay/h200-2026-11-30) against what is planned and predicted today: the
// same plan to the last op, an order that the plan allows, the same live bytes, and times close to the simulator's with
// that host's calibrated cluster.
#include <algorithm>
#include <vector>

#include "tests/catch.hpp"
#include "tests/replay/measured_runs.hpp"

using namespace ebb;
using test::median;
using test::median_of;
using test::Off;
using test::off;
using test::Replayed;

namespace {

const std::vector<Replayed>& replayed() {
  static const std::vector<Replayed> all = test::replayed_in(test::measured_folder("h200-2026-11-30"));
  return all;
}

Cluster calibrated() { return load_cluster(test::measured_folder("h200-2026-11-30") / "cluster.yaml"); }

}  // namespace

TEST_CASE("what was replayed is the plan of today: over 35 jobs, policies and chunk sizes") {
  REQUIRE(replayed().size() == 35);
  for (const Replayed& replay : replayed()) {
    INFO(replay.name);
    CHECK(replay.measured.plan_digest == digest_of(replay.planned.plans));
    REQUIRE(replay.measured.ranks.size() == 1);
    REQUIRE(replay.measured.ranks[0].ops.size() == replay.planned.plans[0].ops.size());
  }
}

TEST_CASE("a replay keeps the plan's order: nothing starts before what it depends on has ended") {
  for (const Replayed& replay : replayed()) {
    INFO(replay.name);
    CHECK(test::early_starts(replay) == 0);
  }
}

TEST_CASE("live bytes of a replay are the predicted ones to the byte, in every phase") {
  for (const Replayed& replay : replayed()) {
    INFO(replay.name);
    CHECK(test::memory_as_planned(replay));
  }
}

// The calibration and all runs follow one another on one quiet host; see the folder's README. The optimizer step is a
// part of the whole, so the same time weighs more in it. At worst 8.6 % are those of Adam on the host, which ran at
// 180 GB/s where the calibration had 147; elsewhere 3.0 %.
TEST_CASE("after one calibration the step is predicted within 2 % in the median and 5 % at worst") {
  const Cluster cluster = calibrated();
  std::vector<double> steps;
  std::vector<double> updates;
  for (const Replayed& replay : replayed()) {
    INFO(replay.name);
    const Off by = off(replay, cluster);
    CHECK(by.step < 0.05);
    CHECK(by.update < (replay.measured.candidate.policy == Policy::cpu_adam ? 0.09 : 0.035));
    steps.push_back(by.step);
    updates.push_back(by.update);
  }
  CHECK(median(steps) < 0.02);
  CHECK(median(updates) < 0.02);
}

TEST_CASE("chunked steps of the 1.8 B job are predicted within 3 %, whole and the optimizer's") {
  const Cluster cluster = calibrated();
  int seen = 0;
  for (const Replayed& replay : replayed()) {
    if (!replay.name.starts_with("measured-1.8b-1xh200-chunked-")) continue;
    INFO(replay.name);
    const Off by = off(replay, cluster);
    CHECK(by.step < 0.03);
    CHECK(by.update < 0.03);
    ++seen;
  }
  CHECK(seen == 3);
}

TEST_CASE("pipelined slots of 4 Mi elements use the link as copies alone do, with 1 % of the state resident") {
  const auto find = [](const std::string& name) -> const Replayed& {
    const auto found = std::find_if(replayed().begin(), replayed().end(),
                                    [&](const Replayed& replay) { return replay.name.starts_with(name); });
    REQUIRE(found != replayed().end());
    return *found;
  };
  const Replayed& pipelined = find("measured-1.8b-1xh200-pipelined-chunk-numel-4194304-");
  const Replayed& chunked = find("measured-1.8b-1xh200-chunked-chunk-numel-100000000.");
  const Plan& plan = pipelined.planned.plans[0];
  Bytes resident{0};
  Bytes state{0};
  for (const Buffer& buffer : plan.buffers)
    if (buffer.role == Role::state) resident += buffer.bytes;
  for (const PlanShard& shard : plan.shards) state += bytes_of(shard.numel, plan.precision.state_bytes());
  CHECK(100 * resident.value <= state.value);
  const double ratio = median_of(chunked.measured.ranks[0].updates) / median_of(pipelined.measured.ranks[0].updates);
  CHECK(ratio > 1.8);
  const auto link = std::find_if(pipelined.measured.provenance.begin(), pipelined.measured.provenance.end(),
                                 [](const auto& fact) { return fact.first == "link of rank 0"; });
  REQUIRE(link != pipelined.measured.provenance.end());
  const std::size_t at = link->second.rfind("GB/s, ");
  CHECK(std::stod(link->second.substr(at + 6)) >= 97.0);
}
