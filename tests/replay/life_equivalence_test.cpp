// Whole lives on the CPU: every policy lives as resident does; an offload that does nothing, a missing dependency and a
// training that goes another way are found.
#include "replay/life_equivalence.hpp"

#include <unistd.h>

#include <filesystem>

#include "models/errors.hpp"
#include "replay/life_files.hpp"
#include "tests/catch.hpp"
#include "tests/replay/life_pairs.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

const Candidate kResident{.policy = Policy::resident};
const Candidate kChunked{.policy = Policy::chunked, .chunk_numel = {4000}};

}  // namespace

TEST_CASE("chunked lives as resident does in every order, on two ranks and then on one") {
  const TwoRankLife life(tiny_job(), kChunked);
  const LifeEquivalence result = life.compare(standard_life(20));
  INFO(to_text(result));
  CHECK(result.holds());
  CHECK(result.orders.size() == 3 + 5);
  CHECK(to_text(result).find("Equivalent: chunked") != std::string::npos);
  CHECK(to_json(result).find("\"equivalent\":true") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(life.directory() + "/policy"));  // checkpoints are gone
}

TEST_CASE("a life on one number of ranks, skipped by nan") {
  TwoRankLife life(tiny_job(), {.policy = Policy::pipelined, .chunk_numel = {3001}, .slots = 3});
  LifeShape shape = standard_life(kShortLife);
  shape.reshard = false;
  shape.skip_value = std::numeric_limits<float>::quiet_NaN();
  const LifeEquivalence result = life.compare(shape);
  INFO(to_text(result));
  CHECK(result.holds());
  CHECK(result.other_ranks == 0);
}

TEST_CASE("resident against itself computes the same and saves nothing") {
  const LifeEquivalence result = TwoRankLife(tiny_job(), kResident).compare(standard_life(kShortLife));
  CHECK(result.equal());
  CHECK_FALSE(result.lower());
  CHECK(to_text(result).find("NOT an offload") != std::string::npos);
}

TEST_CASE("an Adam that no longer waits for its state is found, though program order hides it") {
  TwoRankLife life(tiny_job(), kChunked);
  life.change_policy([](Plan& plan) {
    if (plan.part != LifePart::step || plan.rank != 1) return;
    for (Op& op : plan.ops) {
      if (op.work != Work::adam) continue;
      op.deps_count = 0;
      return;
    }
  });
  const LifeEquivalence result = life.compare(standard_life(kShortLife));
  CHECK_FALSE(result.equal());
  CHECK(result.orders[2].difference.empty());
  CHECK(to_text(result).find("NOT equivalent") != std::string::npos);
}

TEST_CASE("a policy that trains another way is found, and so is a life whose skips do not skip") {
  const TwoRankLife life(tiny_job(), kChunked);
  LifeExecutor executor = life.executor();
  executor.disturbed.clear();
  const RunLeg good = executor.run;
  executor.run = [&](std::span<const LifeRank> ranks, const LifeScript& script) {
    LifeScript other = script;
    if (step_of(ranks.front()).candidate.policy != Policy::resident) other.training.max_norm = 0.5F;
    return good(ranks, other);
  };
  CHECK_FALSE(life.compare(standard_life(kShortLife), executor).equal());
  executor.run = [&](std::span<const LifeRank> ranks, const LifeScript& script) {
    LifeScript other = script;
    other.training.injections.clear();
    return good(ranks, other);
  };
  const LifeEquivalence unskipped = life.compare(standard_life(kShortLife), executor);
  CHECK(unskipped.orders[0].difference.find("not skipped") != std::string::npos);
}
