// A step cut where activation levels rise and fall: op by op on a plan by hand, and against the uncut frame for jobs of
// every kind: no hazard, the same peak, the same compute time, the same ops that numbers depend on.
#include "planner/compute_cuts.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "planner/device_state.hpp"
#include "planner/life_parts.hpp"
#include "planner/peak_bound.hpp"
#include "planner/step_frame.hpp"
#include "planner/verify.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"

using namespace ebb;

namespace {

/// "kind buffer duration states deps", one op a line.
std::vector<std::string> text_of(const Plan& plan) {
  std::vector<std::string> lines;
  for (const Op& op : plan.ops) {
    std::string line(op.kind == OpKind::allocate ? "+" : op.kind == OpKind::release ? "-" : name_of(op.phase));
    line += " " + plan.buffers[op.buffer.index].name;
    if (op.kind == OpKind::compute) {
      line += " " + std::to_string(op.duration.value);
      if (op.states != 0) line += " [" + std::to_string(op.range.begin) + "," + std::to_string(op.range.end) + ")";
      if (op.deps_count > 0) line += " waits";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Op stand_in(Phase phase, ElementRange range, std::int64_t ticks) {
  const unsigned states = phase == Phase::forward ? kParams : kParams | kGrads;
  return {.kind = OpKind::compute,
          .phase = phase,
          .states = static_cast<std::uint8_t>(states),
          .stream = kComputeStream,
          .range = range,
          .duration = Ticks{ticks}};
}

ActivationLevel level(std::int64_t bytes, std::int64_t rises, std::int64_t falls) {
  return {Bytes{bytes}, Ticks{rises}, Ticks{falls}};
}

/// resident's step with `levels` or without: lower_resident's calls.
Plan resident_step(const RankModel& rank, const ActivationLevels* levels, const TideHooks& hooks = {},
                   LifePart part = LifePart::step) {
  Plan plan = lower_part(rank, {.policy = Policy::resident}, part);  // its job, shards, buckets; ops are written anew
  PlanBuilder builder(plan, 64);
  const Part all = whole(rank);
  const DeviceState state = device_state(builder, rank.job->precision, all, kAllState);
  FrameOptions options = standard_frame(rank);
  options.levels = levels;
  StepFrame frame(builder, rank, options);
  frame.zero_grads();
  frame.forward_backward(hooks);
  frame.finalize();
  if (is_skip(part)) return plan;
  step_on_device(builder, rank, rank.job->precision, rank.job->adam_of(Policy::resident), all, state);
  quantize_params(builder, rank);
  frame.close();
  return plan;
}

ActivationLevels levels_of(const RankModel& rank) {
  return activation_levels(*rank.job, *rank.stage, rank.compute, rank.footprint);
}

std::vector<test::RankCase> cases() {
  std::vector<test::RankCase> cases = test::rank_cases();
  for (const std::int64_t stage : {0, 1, 3}) {
    cases.push_back(test::rank_case("llama3-70b, interleaved", load_job("llama3-70b-hgx-h200"), stage, stage * 16));
    Job plain = load_job("llama3-70b-hgx-h200");
    plain.parallel.virtual_pipeline = 1;
    cases.push_back(test::rank_case("llama3-70b, one stage a rank", plain, stage, stage * 16));
    plain.batch.global = plain.parallel.data();
    plain.recompute = {.granularity = RecomputeGranularity::full, .method = "uniform", .layers = 2, .modules = {}};
    cases.push_back(test::rank_case("llama3-70b, one micro-batch, recomputed", plain, stage, stage * 16));
  }
  cases.push_back(test::rank_case("small", load_job(EBB_SOURCE_DIR "/tests/gpu/replay-small.yaml")));
  return cases;
}

/// Ops that numbers depend on, without their durations, buffers and dependencies, and how long all compute takes.
struct Essence {
  std::vector<Op> ops;
  Ticks forward{0};
  Ticks backward{0};
};
Essence essence_of(const Plan& plan) {
  Essence essence;
  for (const Op& op : plan.ops) {
    if (op.kind == OpKind::allocate || op.kind == OpKind::release) continue;
    if (op.kind == OpKind::compute) (op.phase == Phase::forward ? essence.forward : essence.backward) += op.duration;
    if (op.kind == OpKind::compute && op.states == 0) {
      CHECK(op.range == ElementRange{});
      continue;
    }
    Op plain = op;
    plain.duration = Ticks{0};
    plain.buffer = {};
    plain.deps_begin = plain.deps_count = 0;
    essence.ops.push_back(plain);
  }
  return essence;
}

}  // namespace

TEST_CASE("of equally long pieces forward's first and backward's last count") {
  const ActivationLevels levels{{level(1, 5, 35), level(2, 10, 25)}, {15}, {30}};
  Plan plan;
  PlanBuilder builder(plan, 64);
  const BufferId idle = builder.buffer("idle", Memory::device, {1}, true);
  ComputeCuts cuts(builder, levels, idle);
  cuts.compute(stand_in(Phase::forward, {0, 9}, 15), {});
  cuts.compute(stand_in(Phase::backward, {0, 9}, 30), {});
  CHECK(text_of(plan) == std::vector<std::string>{
                             "forward idle 5 [0,9)", "+ activations 0", "forward activations 0 5", "+ activations 1",
                             "forward activations 1 5", "backward activations 1 10", "- activations 1",
                             "backward activations 0 10", "- activations 0", "backward idle 10 [0,9)"});
}

TEST_CASE("cuts by hand: levels that rise at once, between two stand-ins and in backward, and a wait without any") {
  // Two stand-ins of 10 forward, two of 20 backward.
  const ActivationLevels levels{{level(1, 3, 55), level(2, 10, 55), level(4, 14, 40), level(8, 25, 30)}, {20}, {40}};
  Plan plan;
  PlanBuilder builder(plan, 64);
  const BufferId idle = builder.buffer("idle", Memory::device, {1}, true);
  ComputeCuts cuts(builder, levels, idle);
  std::vector<std::string> calls;
  cuts.use(
      {.before_rise = [&](std::size_t k) { calls.push_back("+" + std::to_string(k) + " " + text_of(plan).back()); },
       .after_fall = [&](std::size_t k) { calls.push_back("-" + std::to_string(k) + " " + text_of(plan).back()); }});
  const OpId gathered = builder.add({.kind = OpKind::collective, .stream = kComm, .buffer = idle});
  cuts.compute(stand_in(Phase::forward, {0, 5}, 10), {gathered});
  const OpId second = cuts.compute(stand_in(Phase::forward, {5, 9}, 10), {gathered});
  cuts.compute(stand_in(Phase::backward, {0, 4}, 20), {});
  const OpId last = cuts.compute(stand_in(Phase::backward, {4, 9}, 20), {});
  cuts.finish();
  // The longest piece counts, wherever it lies; what precedes or follows a stand-in, its first and last.
  CHECK(text_of(plan) == std::vector<std::string>{
                             "forward idle", "forward idle 3 waits", "+ activations 0", "forward activations 0 7 [0,5)",
                             "+ activations 1", "forward activations 1 4", "+ activations 2",
                             "forward activations 2 6 [5,9)", "backward activations 2 5", "+ activations 3",
                             "backward activations 3 5", "- activations 3", "backward activations 2 10 [0,4)",
                             "- activations 2", "backward activations 1 15 [4,9)", "- activations 1", "- activations 0",
                             "backward idle 5"});
  CHECK(text_of(plan)[second.index] == "forward activations 2 6 [5,9)");
  CHECK(text_of(plan)[last.index] == "backward idle 5");
  // Before the allocation, and after the release.
  CHECK(calls == std::vector<std::string>{"+0 forward idle 3 waits", "+1 forward activations 0 7 [0,5)",
                                          "+2 forward activations 1 4", "+3 backward activations 2 5",
                                          "-3 - activations 3", "-2 - activations 2", "-1 - activations 1",
                                          "-0 - activations 0"});
  for (std::size_t k = 0; k < 4; ++k) {
    const Buffer& buffer = plan.buffers[1 + k];
    CHECK(buffer.role == Role::other);
    CHECK(buffer.bytes == levels.levels[k].bytes);
    CHECK(buffer.ends_with == Phase::backward);
    CHECK_FALSE(buffer.initial);
  }
}

TEST_CASE("levels from the first moment to the last, and compute that takes no time") {
  const ActivationLevels levels{{level(1, 0, 30), level(2, 0, 30)}, {10}, {20}};
  Plan plan;
  PlanBuilder builder(plan, 64);
  const BufferId idle = builder.buffer("idle", Memory::device, {1}, true);
  ComputeCuts cuts(builder, levels, idle);
  cuts.compute(stand_in(Phase::forward, {0, 5}, 0), {});
  cuts.compute(stand_in(Phase::forward, {0, 5}, 10), {});
  cuts.compute(stand_in(Phase::backward, {0, 5}, 20), {});
  cuts.finish();
  CHECK(text_of(plan) == std::vector<std::string>{"+ activations 0", "+ activations 1", "forward activations 1 0 [0,5)",
                                                  "forward activations 1 10 [0,5)", "backward activations 1 20 [0,5)",
                                                  "- activations 1", "- activations 0"});
}

TEST_CASE("a step with levels: no hazard, and peak, compute time and numbers of the step without") {
  for (const test::RankCase& rank : cases()) {
    const ActivationLevels levels = levels_of(rank.rank);
    for (const LifePart part : {LifePart::step, LifePart::first_step, LifePart::skip, LifePart::first_skip}) {
      INFO(rank.name << ", stage " << rank.stage->pipeline_rank << ", " << name_of(part));
      const Plan coarse = lower_part(rank.rank, {.policy = Policy::resident}, part);
      std::vector<int> calls(levels.levels.size(), 0);
      const Plan cut = resident_step(rank.rank, &levels,
                                     {.before_rise = [&](std::size_t k) { CHECK(calls[k]++ == 0); },
                                      .after_fall = [&](std::size_t k) { CHECK(calls[k]++ == 1); }},
                                     part);
      CHECK(std::all_of(calls.begin(), calls.end(), [](int count) { return count == 2; }));
      const std::vector<Hazard> hazards = verify(cut);
      for (const Hazard& hazard : hazards) UNSCOPED_INFO(hazard.text);
      CHECK(hazards.empty());
      CHECK(peak_bound(cut).bytes == peak_bound(coarse).bytes);
      const Essence expected = essence_of(coarse);
      const Essence got = essence_of(cut);
      CHECK(got.forward == expected.forward);
      CHECK(got.backward == expected.backward);
      CHECK(got.ops == expected.ops);
    }
  }
}

TEST_CASE("every piece is on the newest level that is alive, and begins when the levels say") {
  for (const test::RankCase& rank : cases()) {
    INFO(rank.name << ", stage " << rank.stage->pipeline_rank);
    const ActivationLevels levels = levels_of(rank.rank);
    const Plan cut = resident_step(rank.rank, &levels);
    std::vector<BufferId> alive;
    Ticks now{0};
    for (const Op& op : cut.ops) {
      if (op.phase != Phase::forward && op.phase != Phase::backward) continue;
      const std::string& name = op.buffer.valid() ? cut.buffers[op.buffer.index].name : cut.job;
      const bool is_level = name.starts_with("activations ");
      const auto level = [&] { return levels.levels[std::stoul(name.substr(12))]; };
      if (op.kind == OpKind::allocate && is_level) {
        CHECK(now == level().rises);
        alive.push_back(op.buffer);
      }
      if (op.kind == OpKind::release && is_level) {
        CHECK(now == level().falls);
        REQUIRE(alive.back() == op.buffer);
        alive.pop_back();
      }
      if (op.kind != OpKind::compute) continue;
      if (alive.empty())
        CHECK(name == "workspaces");
      else
        CHECK(op.buffer == alive.back());
      now += op.duration;
    }
    CHECK(alive.empty());
    CHECK(now == levels.forward + levels.backward);
  }
}

TEST_CASE("without levels a step is as ever: resident's own") {
  for (const test::RankCase& rank : test::rank_cases()) {
    const Plan plan = resident_step(rank.rank, nullptr);
    const Plan expected = lower(rank.rank, {.policy = Policy::resident});
    CHECK(plan.ops == expected.ops);
    CHECK(plan.deps == expected.deps);
    CHECK(plan.buffers == expected.buffers);
  }
}
