// verify_together(): plans of all ranks of a job agree, and what is changed on one rank is found.
#include "planner/verify_together.hpp"

#include <algorithm>
#include <filesystem>
#include <random>
#include <vector>

#include "models/job_yaml.hpp"
#include "planner/verify.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"
#include "tests/planner/plan_by_hand.hpp"

using namespace ebb;
using test::ByHand;

namespace {

/// One plan for every rank of the job.
std::vector<Plan> plans_of(const Job& job, const Candidate& candidate) {
  std::vector<Plan> plans;
  const std::int64_t per_stage = job.parallel.gpus / job.parallel.pipeline;
  for (std::int64_t stage = 0; stage < job.parallel.pipeline; ++stage) {
    const StageLayout layout = stage_layout(job, stage);
    for (std::int64_t i = 0; i < per_stage; ++i) {
      plans.push_back(lower(rank_model(job, layout, stage * per_stage + i), candidate));
    }
  }
  return plans;
}

struct JobCase {
  std::string name;
  Job job;
};

std::vector<JobCase> jobs() {
  std::vector<JobCase> cases;
  const Job dense = load_job("llama3-8b-hgx-h200");
  cases.push_back({"dense", dense});
  Job plain = dense;
  plain.parallel.overlap_grad_reduce = plain.parallel.overlap_param_gather = false;
  cases.push_back({"dense, no overlap", plain});
  Job instances = dense;
  instances.parallel.optimizer_instances = 2;
  cases.push_back({"two optimizer instances", instances});
  Job stages = dense;
  stages.parallel.pipeline = 2;
  stages.parallel.tensor = stages.parallel.expert_tensor = 2;
  cases.push_back({"two stages, two tensor ranks", stages});
  Job fp8 = dense;
  fp8.precision.fp8 = Fp8Recipe::blockwise;
  fp8.precision.fp8_param_gather = true;
  cases.push_back({"FP8 parameter gather", fp8});
  Job experts = load_job("qwen3-30b-a3b-hgx-h100");
  cases.push_back({"experts", experts});
  experts.parallel.expert = 4;  // dense and expert groups that differ
  cases.push_back({"experts in two groups", experts});
  experts.precision.fp8 = Fp8Recipe::blockwise;
  experts.precision.fp8_param_gather = true;
  cases.push_back({"experts in FP8", experts});
  experts.parallel.overlap_param_gather = false;
  cases.push_back({"experts in FP8, gather in the step", experts});
  return cases;
}

std::vector<Candidate> every_policy() {
  return {{.policy = Policy::resident},
          {.policy = Policy::full_reload},
          {.policy = Policy::chunked, .chunk_numel = {300'000'000}},
          {.policy = Policy::windowed, .chunk_size_mb = 512},
          {.policy = Policy::cpu_adam, .fraction = 0.5},
          {.policy = Policy::pipelined, .chunk_numel = {100'000'000}, .slots = 2}};
}

std::vector<std::uint32_t> collectives_of(const Plan& plan) {
  std::vector<std::uint32_t> ops;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].kind == OpKind::collective) ops.push_back(i);
  }
  return ops;
}

Op collective(Work work, std::uint32_t members, std::uint32_t stride, std::int64_t bytes) {
  return {
      .kind = OpKind::collective, .work = work, .stream = kH2d, .members = members, .stride = stride, .bytes = {bytes}};
}

/// Four ranks: neighbours in pairs (0 1, 2 3), and pairs two apart (0 2, 1 3).
ByHand by_hand(std::int64_t rank) {
  ByHand by;
  by.plan.rank = rank;
  return by;
}

}  // namespace

TEST_CASE("all ranks of a job issue the same collectives, under every policy") {
  std::size_t together = 0;
  for (const JobCase& job : jobs()) {
    for (const Candidate& candidate : every_policy()) {
      INFO(job.name << ": " << test::text_of(candidate));
      const std::vector<JobHazard> hazards = verify_together(plans_of(job.job, candidate));
      for (const JobHazard& hazard : hazards) UNSCOPED_INFO(hazard.text);
      CHECK(hazards.empty());
      ++together;
    }
  }
  CHECK(together == 54);
}

// Up to 288 ranks, nine stages, interleaved ones, experts on some of them.
TEST_CASE("every rank of every job of the library is safe, alone and with the others") {
  std::size_t verified = 0;
  for (const auto& entry : std::filesystem::directory_iterator(EBB_SOURCE_DIR "/models/jobs")) {
    const Job job = load_job(entry.path().string());
    if (job.parallel.gpus > 512) continue;  // seconds
    for (const Candidate& candidate : every_policy()) {
      INFO(job.name << ": " << test::text_of(candidate));
      const std::vector<Plan> plans = plans_of(job, candidate);
      CHECK(verify_together(plans).empty());
      for (const Plan& plan : plans) CHECK(verify(plan).empty());
      verified += plans.size();
    }
  }
  CHECK(verified > 4000);
}

TEST_CASE("a collective that one rank leaves out, swaps, resizes or spreads otherwise is found") {
  std::size_t changed = 0;
  for (const JobCase& job : jobs()) {
    const Candidate candidate{.policy = Policy::chunked, .chunk_numel = {300'000'000}};
    const std::vector<Plan> sound = plans_of(job.job, candidate);
    std::mt19937 random(5);
    for (std::size_t victim = 0; victim < sound.size(); ++victim) {
      const std::vector<std::uint32_t> ops = collectives_of(sound[victim]);
      REQUIRE(ops.size() > 1);
      for (int change = 0; change < 4; ++change) {
        std::vector<Plan> plans = sound;
        Plan& plan = plans[victim];
        const std::uint32_t op = ops[random() % ops.size()];
        INFO(job.name << ": rank " << plan.rank << ", op " << op << ", change " << change);
        if (change == 0) plan = test::without_op(plan, op);
        if (change == 1) plan.ops[op].bytes += Bytes{1};
        if (change == 2) plan.ops[op].domains += 1;
        if (change == 3) plan.ops[op].work = Work::all_to_all;
        const std::vector<JobHazard> hazards = verify_together(plans);
        REQUIRE_FALSE(hazards.empty());
        for (const JobHazard& hazard : hazards) {
          CHECK(hazard.kind == HazardKind::collective_mismatch);
          // Where the victim is its group's lowest rank, it is the others that differ.
          CHECK((hazard.first_rank == plan.rank || hazard.second_rank == plan.rank));
        }
        ++changed;
      }
    }
  }
  CHECK(changed == 416);
}

TEST_CASE("two collectives of one communicator in another order are a mismatch, of two a deadlock or harmless") {
  std::size_t mismatches = 0;
  std::size_t deadlocks = 0;
  std::size_t harmless = 0;
  for (const JobCase& job : jobs()) {
    const std::vector<Plan> sound = plans_of(job.job, {.policy = Policy::resident});
    for (const std::size_t victim : {std::size_t{0}, sound.size() - 1}) {
      const std::vector<std::uint32_t> ops = collectives_of(sound[victim]);
      for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
        std::vector<Plan> plans = sound;
        Plan& plan = plans[victim];
        const Op& a = plan.ops[ops[i]];
        const Op& b = plan.ops[ops[i + 1]];
        const CommGroup of_a = group_of(plan, a);
        const CommGroup of_b = group_of(plan, b);
        const bool alike = a.work == b.work && a.bytes == b.bytes;
        const auto shared = std::count_if(sound.begin(), sound.end(), [&](const Plan& other) {
          return group_of(other, a) == of_a && group_of(other, b) == of_b;
        });
        std::vector<std::uint32_t> order(plan.ops.size());
        for (std::uint32_t k = 0; k < order.size(); ++k) order[k] = k;
        // Only the order on the stream changes: what stands between them, and waits for the first, stays behind it.
        std::rotate(order.begin() + ops[i], order.begin() + ops[i + 1], order.begin() + ops[i + 1] + 1);
        plan = test::reordered(plan, order);
        const std::vector<JobHazard> hazards = verify_together(plans);
        INFO(job.name << ": rank " << plan.rank << ", ops " << ops[i] << " and " << ops[i + 1]);
        if (of_a == of_b && !alike) {
          REQUIRE_FALSE(hazards.empty());
          CHECK(hazards[0].kind == HazardKind::collective_mismatch);
          ++mismatches;
        } else if (of_a != of_b && shared > 1) {
          REQUIRE(hazards.size() == 1);
          CHECK(hazards[0].kind == HazardKind::collective_deadlock);
          ++deadlocks;
        } else {
          ++harmless;
        }
      }
    }
  }
  CHECK(mismatches > 50);
  CHECK(deadlocks > 100);
  CHECK(harmless < 10);
}

TEST_CASE("a mismatch names both ranks, both operations and the group, by hand") {
  ByHand a = by_hand(0);
  ByHand b = by_hand(2);
  a.add(collective(Work::all_gather, 2, 2, 100));
  a.add(collective(Work::all_reduce, 2, 2, 4));
  b.add(collective(Work::all_gather, 2, 2, 100));
  SECTION("another operation") {
    const OpId other = b.add(collective(Work::reduce_scatter, 2, 2, 4));
    const std::vector<JobHazard> hazards = verify_together(std::vector<Plan>{b.plan, a.plan});
    REQUIRE(hazards.size() == 1);
    CHECK(hazards[0].group == CommGroup{0, 2, 2});
    CHECK(hazards[0].first_rank == 0);
    CHECK(hazards[0].second_rank == 2);
    CHECK(hazards[0].first == OpId{1});
    CHECK(hazards[0].second == other);
    CHECK(hazards[0].text ==
          "operation 1 among ranks 0, 2: rank 0 issues collective all-reduce 1 of 4 bytes, rank 2 issues collective "
          "reduce-scatter 1 of 4 bytes; needs: the same on every rank");
  }
  SECTION("none, where the other waits") {
    const std::vector<JobHazard> hazards = verify_together(std::vector<Plan>{a.plan, b.plan});
    REQUIRE(hazards.size() == 1);
    CHECK_FALSE(hazards[0].second.valid());
    CHECK(hazards[0].text.find("rank 2 issues nothing more;") != std::string::npos);
  }
  SECTION("a rank of another group is not compared") {
    b.add(collective(Work::all_reduce, 2, 2, 4));
    const ByHand c = by_hand(1);
    CHECK(verify_together(std::vector<Plan>{a.plan, b.plan, c.plan}).empty());
    const ByHand d = by_hand(0);
    CHECK(verify_together(std::vector<Plan>{d.plan}).empty());
  }
}

TEST_CASE("ranks that wait for each other are named with the order that one of them lacks, by hand") {
  SECTION("two ranks, two communicators, one stream") {
    // Ranks 0 and 1 are in both groups: {0, 1} and {0, 1, 2, 3}.
    ByHand a = by_hand(0);
    ByHand b = by_hand(1);
    const OpId x = a.add(collective(Work::all_gather, 2, 1, 100));
    const OpId y = a.add(collective(Work::all_reduce, 4, 1, 4));
    const OpId late_y = b.add(collective(Work::all_reduce, 4, 1, 4));
    const OpId late_x = b.add(collective(Work::all_gather, 2, 1, 100));
    const std::vector<JobHazard> hazards = verify_together(std::vector<Plan>{a.plan, b.plan});
    REQUIRE(hazards.size() == 1);
    const JobHazard& hazard = hazards[0];
    CHECK(hazard.kind == HazardKind::collective_deadlock);
    REQUIRE(hazard.missing);
    const bool second_is_b = hazard.second_rank == 1;
    CHECK(*hazard.missing == (second_is_b ? Edge{late_x, late_y} : Edge{y, x}));
    CHECK(hazard.text.find("rank 0 runs collective all-gather 0 (ranks 0, 1) before collective all-reduce 1 (ranks 0, "
                           "1, ... 3)") != std::string::npos);
    CHECK(hazard.text.find("rank 1 runs collective all-reduce 0 (ranks 0, 1, ... 3) before collective all-gather 1 "
                           "(ranks 0, 1)") != std::string::npos);
    CHECK(hazard.text.find("; needs: ") != std::string::npos);
    const Plan cured = test::with_moved(second_is_b ? b.plan : a.plan, hazard.missing->first.index, 0);
    CHECK(verify_together(std::vector<Plan>{second_is_b ? a.plan : b.plan, cured}).empty());
  }
  SECTION("on two streams the orders do not matter, unless a dependency makes them") {
    ByHand a = by_hand(0);
    ByHand b = by_hand(1);
    Op other = collective(Work::all_reduce, 4, 1, 4);
    other.stream = kD2h;
    const OpId x = a.add(collective(Work::all_gather, 2, 1, 100));
    a.add(other);
    const OpId y = b.add(other);
    b.add(collective(Work::all_gather, 2, 1, 100));
    CHECK(verify_together(std::vector<Plan>{a.plan, b.plan}).empty());
    a.plan = test::with_dep(a.plan, OpId{1}, x);
    CHECK(verify_together(std::vector<Plan>{a.plan, b.plan}).empty());
    b.plan = test::with_dep(b.plan, OpId{1}, y);
    CHECK(verify_together(std::vector<Plan>{a.plan, b.plan}).size() == 1);
  }
  SECTION("a ring of four: no two ranks disagree, all wait") {
    // Groups {0 1} {2 3} {0 2} {1 3}: each rank runs one of them before the other, around the ring.
    std::vector<Plan> plans;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      ByHand by = by_hand(rank);
      const bool neighbours_first = rank == 0 || rank == 3;
      by.add(collective(Work::all_gather, 2, neighbours_first ? 1 : 2, 8));
      by.add(collective(Work::all_gather, 2, neighbours_first ? 2 : 1, 8));
      plans.push_back(by.plan);
    }
    const std::vector<JobHazard> hazards = verify_together(plans);
    REQUIRE(hazards.size() == 1);
    for (const char* rank : {"rank 0 runs", "rank 1 runs", "rank 2 runs", "rank 3 runs"}) {
      CHECK(hazards[0].text.find(rank) != std::string::npos);
    }
    plans.pop_back();
    CHECK(verify_together(plans).empty());  // without the fourth plan nobody knows
  }
}
