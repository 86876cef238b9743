// Two models of one life: Life replays Megatron-LM's allocations tensor by tensor, plans say what Ebb's own runtime
// does. Where both do the same, the optimizer state on the device is the same to the byte; where they differ, the test
// says how and why.
#include <algorithm>

#include "planner/chunking.hpp"
#include "planner/life_replay.hpp"
#include "planner/optimizer_traffic.hpp"
#include "tests/catch.hpp"
#include "tests/planner/life_cases.hpp"
#include "tests/planner/lowering_cases.hpp"

using namespace ebb;

namespace {

/// Masters and moments at the moment of `phase`'s peak, as Megatron-LM allocates.
Bytes state_in_life(const RankModel& rank, const Candidate& candidate, Phase phase, Start start = Start::fresh) {
  const LifeMemory life =
      replay_life(allocation_trace(rank, candidate, {.start = start, .whole_life = true}), kUnlimited);
  const auto found =
      std::find_if(life.parts.begin(), life.parts.end(), [&](const PartMemory& part) { return part.phase == phase; });
  REQUIRE(found != life.parts.end());
  return found->at_peak[static_cast<std::size_t>(MemoryTerm::masters)] +
         found->at_peak[static_cast<std::size_t>(MemoryTerm::moments)];
}

Bytes state_in_plan(const RankModel& rank, const Candidate& candidate, LifePart part) {
  return test::state_peak(lower_part(rank, candidate, part));
}

const Candidate kResident{};
const Candidate kFullReload{.policy = Policy::full_reload};
const Candidate kChunked{.policy = Policy::chunked, .chunk_numel = {100'000'000}};

}  // namespace

TEST_CASE("state on the device in init and the first step is that of Megatron-LM's life") {
  const test::RankCase measured = test::measured_case();
  const RankModel& rank = measured.rank;
  const Precision& precision = rank.job->precision;
  const Bytes masters = allocated_state(precision, rank.shards, kMaster);
  const Bytes all = allocated_state(precision, rank.shards, kAllState);
  Bytes vectors{0};
  for (const Shard& shard : rank.shards)
    if (!rank.stage->parameters[shard.parameter].decayed)
      vectors += allocated_state(precision, std::span(&shard, 1), kMaster);
  for (const Candidate& candidate : {kResident, kFullReload}) {
    INFO(test::text_of(candidate));
    // Megatron-LM's peak is where masters of matrices are all made and those of vectors, the second group, are not.
    CHECK(state_in_life(rank, candidate, Phase::init) == masters - vectors);
    CHECK(state_in_plan(rank, candidate, LifePart::init) == masters);
    CHECK(state_in_life(rank, candidate, Phase::first_step) == all);
    CHECK(state_in_plan(rank, candidate, LifePart::first_step) == all);
  }
}

TEST_CASE("chunked: both build masters without a spike, and step a chunk at a time") {
  const test::RankCase measured = test::measured_case();
  const RankModel& rank = measured.rank;
  const Precision& precision = rank.job->precision;
  Bytes largest_shard{0};
  for (const Shard& shard : rank.shards)
    largest_shard = std::max(largest_shard, allocated_state(precision, std::span(&shard, 1), kMaster));
  // Megatron-LM copies a shard's parameters to the host and converts them there; Ebb converts them on the device.
  CHECK(state_in_life(rank, kChunked, Phase::init) <= largest_shard);
  CHECK(state_in_plan(rank, kChunked, LifePart::init) == largest_shard);
  Bytes chunk{0};
  for (const Chunk& part : chunk_by_numel(rank.shards, kChunked.chunk_numel)) {
    const auto shards = std::span(rank.shards).subspan(part.first, part.count);
    chunk = std::max(chunk, allocated_state(precision, shards, kAllState));
  }
  CHECK(state_in_plan(rank, kChunked, LifePart::first_step) == chunk);
  // Its peak is in backward, when no chunk is there.
  CHECK(state_in_life(rank, kChunked, Phase::first_step) <= chunk);
}

TEST_CASE("save and load: state of the resident policy stays, chunked has none, or a chunk where Megatron-LM has all") {
  const test::RankCase measured = test::measured_case();
  const RankModel& rank = measured.rank;
  const Bytes all = allocated_state(rank.job->precision, rank.shards, kAllState);
  CHECK(state_in_life(rank, kResident, Phase::save) == all);
  CHECK(state_in_plan(rank, kResident, LifePart::save) == all);
  CHECK(state_in_life(rank, kChunked, Phase::save) == Bytes{0});
  CHECK(state_in_plan(rank, kChunked, LifePart::save) == Bytes{0});
  CHECK(state_in_life(rank, kResident, Phase::load, Start::resume) == all);
  CHECK(state_in_plan(rank, kResident, LifePart::load) == all);
  // Pull request 6544 fills device tensors of all state before it offloads them (reference: its known spike); Ebb
  // brings back a chunk, fills it and offloads it.
  CHECK(state_in_life(rank, kChunked, Phase::load, Start::resume) == all);
  CHECK(state_in_plan(rank, kChunked, LifePart::load) == state_in_plan(rank, kChunked, LifePart::step));
}
