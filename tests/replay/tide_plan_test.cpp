// A step in which state ebbs away for activations and comes back, written by hand: buffers that live twice, slots that
// arrive while backward goes on, forward and backward cut by fillers. It is sound, its arena is the cap, its numbers
// are resident's in every order, and none of its dependencies is for nothing.
#include <vector>

#include "planner/plan_builder.hpp"
#include "planner/verify.hpp"
#include "replay/device_layout.hpp"
#include "replay/device_memory.hpp"
#include "replay/reference.hpp"
#include "tests/catch.hpp"
#include "tests/replay/overlay_check.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

constexpr std::int64_t kUnit = 256;
constexpr std::int64_t kPieces = 8;  // one stays, two are tails, five move through slots
constexpr std::int64_t kPieceUnits = 112;
constexpr std::int64_t kLevelUnits[] = {80, 120, 136};  // together as much as three pieces

Job small_job() {
  Job job = tiny_job();
  job.model.layers = 1;
  job.model.vocab = 96;
  return job;
}

Plan resident_plan() { return host_plans(small_job(), {.policy = Policy::resident}).plans.front(); }

/// Writes the step. Room beside parameters, gradients and the piece that stays: three pieces, which are places 0 (far
/// from the activations) to 2.
///   forward    tails 0 (place 1) and 1 (place 0) leave for levels 1 and 2
///   backward   p1 comes into place 0 when level 2 is gone, p0 into place 1 when level 1 is
///   finalize   p2 comes into place 2
///   step       p0 p1 p2, then p3 in place 1, p4 in 0, and the tails p5 in 1, p6 in 0
class Tide {
 public:
  explicit Tide(Plan& plan) : plan_(plan), by_(plan, 100) {
    numel_ = owned_of(plan) / kPieces;
    REQUIRE(numel_ * kPieces == owned_of(plan));
    make_buffers();
    forward();
    backward();
    finalize();
    step();
  }

 private:
  Bytes bytes() const { return bytes_of({numel_}, plan_.precision.state_bytes()); }
  /// Steps go from the last elements to the first; those of piece 7 stay.
  ElementRange range(std::int64_t k) const { return {(6 - k) * numel_, (7 - k) * numel_}; }

  BufferId state(const char* name, std::size_t index, bool initial, ElementRange holds) {
    const BufferId made = by_.buffer(name, index, {kPieceUnits * kUnit});
    plan_.buffers[made.index].initial = initial;
    by_.state(made, kAllState, holds, true);
    return made;
  }
  void make_buffers() {
    by_.buffer("host state", Memory::pinned, {7 * bytes().value}, true);
    const BufferId params = by_.buffer("parameters", Memory::device, {150 * kUnit}, true);
    const BufferId grads = by_.buffer("gradients", Memory::device, {300 * kUnit}, true);
    by_.role(params, Role::params);
    by_.role(grads, Role::grads);
    kept_ = state("kept", 0, true, range(-1));
    for (std::size_t i = 0; i < 2; ++i) tails_.push_back(state("tail", i, true, range(5 + static_cast<int>(i))));
    for (std::size_t s = 0; s < 3; ++s) {
      slots_.push_back(state("slot", s, false, {}));
      plan_.buffers[slots_.back().index].ends_with = Phase::step;
    }
    for (std::size_t l = 0; l < 3; ++l)
      levels_.push_back(by_.buffer("activations", l, {kLevelUnits[l] * kUnit}, Phase::backward));
    norm_ = by_.buffer("gradient norm", Memory::device, {512}, false, Phase::finalize);
    by_.role(norm_, Role::norm);
  }

  OpId copy(OpKind kind, Phase phase, std::int64_t k, BufferId buffer, OpId dep = OpId::none()) {
    return by_.add({.kind = kind,
                    .phase = phase,
                    .states = kAllState,
                    .stream = kind == OpKind::copy_h2d ? kH2d : kD2h,
                    .chunk = static_cast<std::uint32_t>(k),
                    .buffer = buffer,
                    .bytes = bytes(),
                    .range = range(k)},
                   {dep});
  }
  /// `states`: none for a filler.
  void compute(Phase phase, std::size_t level, std::uint8_t states) {
    by_.add({.kind = OpKind::compute,
             .phase = phase,
             .states = states,
             .stream = kComputeStream,
             .buffer = levels_[level],
             .duration = {1000}});
  }
  OpId kernel(Phase phase, Work work, std::uint8_t states, BufferId buffer, ElementRange range, OpId dep) {
    return by_.add({.kind = OpKind::kernel,
                    .phase = phase,
                    .work = work,
                    .states = states,
                    .stream = kComputeStream,
                    .buffer = buffer,
                    .bytes = bytes(),
                    .range = range},
                   {dep});
  }

  void forward() {
    kernel(Phase::forward, Work::zero_grads, kGrads, {}, {}, {});
    const OpId out[] = {copy(OpKind::copy_d2h, Phase::forward, 5, tails_[0]),
                        copy(OpKind::copy_d2h, Phase::forward, 6, tails_[1])};
    for (std::size_t level = 0; level < 3; ++level) {
      if (level > 0) by_.release(tails_[level - 1], Phase::forward, {out[level - 1]});
      by_.allocate(levels_[level], Phase::forward);
      compute(Phase::forward, level, level == 1 ? kParams : 0);
    }
  }
  void backward() {
    for (std::size_t level = 3; level-- > 0;) {
      compute(Phase::backward, level, level == 1 ? kParams | kGrads : 0);
      by_.release(levels_[level], Phase::backward);
      if (level > 0) bring(Phase::backward, static_cast<std::int64_t>(level) - 1, slots_[2 - level]);
    }
  }
  /// Into a buffer that begins its life with it.
  void bring(Phase phase, std::int64_t k, BufferId buffer) {
    const OpId begun = by_.allocate(buffer, phase, static_cast<std::uint32_t>(k));
    in_[k] = copy(OpKind::copy_h2d, phase, k, buffer, begun);
  }
  void finalize() {
    by_.allocate(norm_, Phase::finalize);
    const ElementRange all{0, owned_of(plan_)};
    kernel(Phase::finalize, Work::grad_norm, kGrads, norm_, all, {});
    const OpId clipped = kernel(Phase::finalize, Work::clip, kGrads, norm_, all, {});
    by_.add({.kind = OpKind::host_wait, .phase = Phase::finalize, .stream = kHost, .buffer = norm_}, {clipped});
    by_.release(norm_, Phase::finalize);
    bring(Phase::finalize, 2, slots_[2]);
  }

  OpId adam(std::int64_t k, BufferId buffer) {
    return kernel(Phase::step, Work::adam, kAllState | kGrads | kParams, buffer, range(k),
                  k >= 0 ? in_[k] : OpId::none());
  }
  /// Out when stepped; with `next` another piece follows into the slot.
  OpId step_and_leave(std::int64_t k, BufferId slot, std::int64_t next = 0) {
    const OpId out = copy(OpKind::copy_d2h, Phase::step, k, slot, adam(k, slot));
    if (next > 0) in_[next] = copy(OpKind::copy_h2d, Phase::step, next, slot, out);
    return out;
  }
  void step() {
    step_and_leave(0, slots_[1], 3);
    step_and_leave(1, slots_[0], 4);
    const OpId out2 = step_and_leave(2, slots_[2]);
    adam(-1, kept_);
    const OpId out3 = step_and_leave(3, slots_[1]);
    const OpId out4 = step_and_leave(4, slots_[0]);
    by_.release(slots_[2], Phase::step, {out2});
    by_.release(slots_[1], Phase::step, {out3});
    bring(Phase::step, 5, tails_[0]);
    by_.release(slots_[0], Phase::step, {out4});
    bring(Phase::step, 6, tails_[1]);
    adam(5, tails_[0]);
    adam(6, tails_[1]);
  }

  Plan& plan_;
  PlanBuilder by_;
  std::int64_t numel_ = 0;
  BufferId kept_, norm_;
  std::vector<BufferId> tails_, slots_, levels_;
  OpId in_[7];
};

Plan tide_plan() {
  Plan plan = resident_plan();
  plan.streams.clear();
  plan.candidate = {.policy = Policy::pipelined};
  const Tide written(plan);
  return plan;
}

std::vector<std::vector<RankNumbers>> in_all_orders(const Plan& plan, int steps) {
  const std::vector<Program> programs = {compile(plan, "plan.json")};
  return references(programs, all_orders(1, {}, steps));
}

RankNumbers numbers_of_resident(int steps) {
  const Plan plan = resident_plan();
  const std::vector<Program> programs = {compile(plan, "plan.json")};
  return reference(programs, {.steps = steps}).front();
}

bool same_numbers(const RankNumbers& a, const RankNumbers& b) {
  return a.steps == b.steps && a.final_state == b.final_state;
}

}  // namespace

TEST_CASE("a tide by hand: sound, and its arena is the cap") {
  const Plan plan = tide_plan();
  for (const Hazard& hazard : verify(plan)) FAIL_CHECK(hazard.text);
  const memory::Arena arena = place_buffers(plan);
  CHECK(check_no_overlap(plan) >= 6);
  // Parameters, gradients, the piece that stays, and three places.
  CHECK(arena.max_live == Bytes{(150 + 300 + kPieceUnits + 3 * kPieceUnits) * kUnit});
  CHECK(arena.size == arena.max_live);
  const Plan* const alone[] = {&plan};
  CHECK(backing_of(alone) == DeviceBacking::arena);
  CHECK(device_bytes_needed(alone, alone) == arena.size);
  // Three pieces and three levels beside each other would take twice the room.
  CHECK(kLevelUnits[0] + kLevelUnits[1] + kLevelUnits[2] == 3 * kPieceUnits);
}

TEST_CASE("a tide by hand: the bits of resident step after step, whatever stream is held back") {
  const RankNumbers good = numbers_of_resident(4);
  const Plan plan = tide_plan();
  for (const std::vector<RankNumbers>& numbers : in_all_orders(plan, 4)) {
    CHECK(same_numbers(numbers[0], good));
    CHECK(numbers[0].strays == 0);
    CHECK(numbers[0].peak_live == place_buffers(plan).max_live);
  }
}

TEST_CASE("a tide by hand: without any one of its dependencies verify finds a hazard, and some order other bits") {
  const Plan plan = tide_plan();
  const RankNumbers good = numbers_of_resident(2);
  CHECK(plan.deps.size() > 20);
  std::size_t seen = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    for (std::uint32_t d = 0; d < plan.ops[i].deps_count; ++d) {
      INFO("op " << i << " (" << name_of(plan.ops[i].kind) << ") without its dependency on op "
                 << plan.deps[plan.ops[i].deps_begin + d].index);
      Plan without = plan;
      Op& op = without.ops[i];
      std::swap(without.deps[op.deps_begin + d], without.deps[op.deps_begin + op.deps_count - 1]);
      --op.deps_count;
      CHECK_FALSE(verify(without).empty());
      bool differs = false;
      for (const std::vector<RankNumbers>& numbers : in_all_orders(without, 2))
        differs |= !same_numbers(numbers[0], good) || numbers[0].strays > 0;
      CHECK(differs);
      ++seen;
    }
  }
  CHECK(seen == plan.deps.size());
}
