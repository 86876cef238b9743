// From one plan of a rank's life to the next: which buffer goes on as which, where an arena lays what outlives a part,
// what device memory a life needs before it begins, and which events two plans share; on small plans by hand.
#include "replay/carry_over.hpp"

#include <functional>
#include <string>

#include "models/errors.hpp"
#include "replay/device_layout.hpp"
#include "replay/device_lives.hpp"
#include "replay/device_memory.hpp"
#include "replay/issue_plan.hpp"
#include "replay/torch_memory.hpp"
#include "tests/catch.hpp"
#include "tests/replay/plan_draft.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

using Draft = test::PlanDraft;

constexpr StreamId kHost = Draft::kHost;
constexpr StreamId kCompute = Draft::kCompute;
constexpr StreamId kD2h = Draft::kD2h;
constexpr std::int64_t kMiB = 1 << 20;

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

Program program_of(const Plan& plan) {
  Program program;
  program.plan = &plan;
  program.tensors.assign(plan.buffers.size(), 1);
  return program;
}

/// Init makes "state"; a step brings a slot and activations and takes them away again; a skip plan stops behind its
/// second op, where the slot is alive; a save has a window of its own.
struct SmallLife {
  Draft init{LifePart::init}, step{LifePart::step}, skip{LifePart::skip}, save{LifePart::save};
  BufferId slot_of_step, slot_of_skip, window, activations;

  explicit SmallLife(bool packed) {
    init.buffer("params", 1024, true);
    init.allocate(init.buffer("state", 512, false, packed));

    activations = step.buffer("activations", 4096);
    const BufferId state = step.buffer("state", 512, true, packed);
    step.buffer("params", 1024, true);
    slot_of_step = step.buffer("slot", 2048);
    step.allocate(activations);
    step.release(activations);
    step.allocate(slot_of_step);
    step.op(OpKind::kernel, kCompute, state);
    step.release(slot_of_step);

    slot_of_skip = skip.buffer("slot", 2048);
    const BufferId again = skip.buffer("activations", 4096);
    skip.buffer("state", 512, true, packed);
    skip.buffer("params", 1024, true);
    skip.allocate(again);
    skip.release(again);
    skip.allocate(slot_of_skip);
    skip.release(slot_of_skip);

    save.buffer("params", 1024, true);
    save.buffer("state", 512, true, packed);
    window = save.buffer("window", 1536);
    save.allocate(window);
    save.release(window);
  }
  std::vector<const Plan*> plans() const { return {&init.plan, &step.plan, &skip.plan, &save.plan}; }
};

bool over_each_other(const std::vector<DeviceLife>& a, const std::vector<DeviceLife>& b) {
  for (const DeviceLife& x : a)
    for (const DeviceLife& y : b)
      if (x.first <= y.last && y.first <= x.last) return true;
  return false;
}

void check_apart(const Plan& plan, const std::vector<Bytes>& offsets) {
  const auto lives = device_lives(plan);
  for (std::size_t a = 0; a < lives.size(); ++a) {
    for (std::size_t b = a + 1; b < lives.size(); ++b) {
      if (!over_each_other(lives[a], lives[b])) continue;
      INFO(name_of(plan.part) << ": " << plan.buffers[a].name << " and " << plan.buffers[b].name);
      CHECK((offsets[a] + plan.buffers[a].bytes <= offsets[b] || offsets[b] + plan.buffers[b].bytes <= offsets[a]));
    }
  }
}

/// A life with a tide: init makes nothing but parameters; "tail" is there between steps, gone while "activations" are
/// there, and stepped in "slot" before it comes back. A skip brings it back early, in the step's words; a save has a
/// window that is as large as the activations.
struct TidalLife {
  Draft init{LifePart::init}, step{LifePart::step}, skip{LifePart::skip}, save{LifePart::save};

  TidalLife() {
    init.buffer("params", 512, true);
    init.allocate(init.buffer("tail", 1024, false, true));
    for (Draft* draft : {&step, &skip}) {
      draft->buffer("params", 512, true);
      const BufferId tail = draft->buffer("tail", 1024, true, true);
      const BufferId activations = draft->buffer("activations", 2048);
      const BufferId slot = draft->buffer("slot", 1024, false, true);
      draft->release(tail);
      draft->allocate(activations);
      draft->op(OpKind::kernel, kCompute, activations);
      draft->release(activations);
      draft->allocate(slot);
      if (draft == &skip) draft->allocate(tail);
      draft->op(OpKind::kernel, kCompute, slot);
      draft->release(slot);
      if (draft == &step) draft->allocate(tail);
    }
    const BufferId window = save.buffer("window", 2048);
    save.buffer("tail", 1024, true, true);
    save.buffer("params", 512, true);
    save.allocate(window);
    save.release(window);
  }
};

}  // namespace

TEST_CASE("carry-over: between parts every live buffer goes on under its name, wherever the next plan has it") {
  const SmallLife life(false);
  const std::vector<BufferId> from = carry_over(life.init.plan, {true, true}, life.step.plan, Carry::between_parts);
  REQUIRE(from.size() == 4);
  CHECK(!from[0].valid());
  CHECK(from[1] == BufferId{1});  // state
  CHECK(from[2] == BufferId{0});  // params
  CHECK(!from[3].valid());
}

TEST_CASE("carry-over: a buffer too many, too few or of another size is refused by name") {
  SmallLife life(false);
  const auto carry = [&](std::vector<bool> alive, Carry when = Carry::between_parts) {
    return error_of([&] { carry_over(life.init.plan, alive, life.step.plan, when); });
  };
  CHECK(contains(carry({true, false}), "buffer \"state\" should be alive"));
  CHECK(carry({true, false}, Carry::behind_decision).empty());
  life.init.buffer("leftover", 8);
  CHECK(contains(carry({true, true, true}), "buffer \"leftover\" is alive and not known"));
  CHECK(contains(carry({true, true, true}, Carry::behind_decision), "leftover"));
  life.init.plan.buffers[2].name = "slot";
  CHECK(contains(carry({true, true, true}), "buffer \"slot\" has 8 B and then 2048 B"));
  life.init.plan.buffers[2].bytes = {2048};
  CHECK(contains(carry({true, true, true}), "buffer \"slot\" is alive and not expected"));
  CHECK(carry({true, true, true}, Carry::behind_decision).empty());
}

TEST_CASE("carry-over: a host buffer of the same name is another one") {
  SmallLife life(false);
  life.step.plan.buffers[1].memory = Memory::pinned;
  const std::string error = error_of([&] {
    carry_over(life.init.plan, {true, true}, life.step.plan, Carry::between_parts);
  });
  CHECK(contains(error, "buffer \"state\" is alive and not known"));
}

TEST_CASE("arena of a life: what outlives a part lies still in all of them, and shares its bytes with nothing") {
  const SmallLife life(true);
  const std::vector<const Plan*> plans = life.plans();
  const LifeArena arena = place_life(plans);
  const auto at = [&](std::size_t plan, const char* name) {
    for (std::size_t b = 0; b < plans[plan]->buffers.size(); ++b)
      if (plans[plan]->buffers[b].name == name) return arena.offsets[plan][b];
    return Bytes{-1};
  };
  for (std::size_t p = 1; p < plans.size(); ++p) {
    CHECK(at(p, "params") == at(0, "params"));
    CHECK(at(p, "state") == at(0, "state"));
  }
  // A skip plan goes on with the slot where the step has put it.
  CHECK(at(2, "slot") == at(1, "slot"));
  for (std::size_t p = 0; p < plans.size(); ++p) check_apart(*plans[p], arena.offsets[p]);
  // Temporary ones share: activations with slot and window. 1024 + 512 outlive, 4096 is the largest of the rest.
  CHECK(arena.size == Bytes{1024 + 512 + 4096});
  CHECK(device_bytes_needed(plans, plans) == arena.size);
}

TEST_CASE("arena of a life: what is gone in the midst of a part lends its bytes there, and lies still in all parts") {
  const TidalLife life;
  const std::vector<const Plan*> both = {&life.init.plan, &life.step.plan, &life.save.plan};
  const LifeArena arena = place_life(both);
  for (std::size_t p = 0; p < both.size(); ++p) check_apart(*both[p], arena.offsets[p]);
  CHECK(arena.offsets[0][1] == arena.offsets[1][1]);
  CHECK(arena.offsets[0][1] == arena.offsets[2][1]);
  // The save has all three: 512 + 1024 + 2048. A step has the tail and no activations, or the other way round.
  CHECK(arena.size == Bytes{3584});
  CHECK(arena.max_live == arena.size);
  const std::vector<const Plan*> steps = {&life.init.plan, &life.step.plan};
  CHECK(place_life(steps).size == Bytes{512 + 2048});
  CHECK(device_bytes_needed(steps, steps) == Bytes{512 + 2048});
}

TEST_CASE("arena of a life: a skip that goes another way than its step costs only what is live in either") {
  const TidalLife life;
  const std::vector<const Plan*> plans = {&life.init.plan, &life.step.plan, &life.skip.plan};
  const LifeArena arena = place_life(plans);
  for (std::size_t p = 0; p < plans.size(); ++p) check_apart(*plans[p], arena.offsets[p]);
  for (std::size_t b = 0; b < 4; ++b) CHECK(arena.offsets[1][b] == arena.offsets[2][b]);
  // In the skip slot and tail are there at once; in either activations are there alone.
  CHECK(arena.size == Bytes{512 + 2048});
}

TEST_CASE("arena of a life: of one plan it is the plan's own") {
  const SmallLife life(true);
  const std::vector<const Plan*> one = {&life.step.plan};
  const memory::Arena plain = place_buffers(life.step.plan);
  CHECK(place_life(one).offsets[0] == plain.offsets);
  CHECK(place_life(one).size == plain.size);
}

TEST_CASE("device memory of a life: the cache of one part serves the next, and parts that do not fit are refused") {
  Draft init(LifePart::init), step(LifePart::step);
  init.buffer("params", 30 * kMiB, true);
  const BufferId scratch = init.buffer("scratch", 40 * kMiB);
  init.allocate(scratch);
  init.release(scratch);
  step.buffer("params", 30 * kMiB, true);
  step.allocate(step.buffer("work", 40 * kMiB));
  const std::vector<const Plan*> plans = {&init.plan, &step.plan};
  CHECK(device_bytes_needed(plans, plans) == Bytes{70 * kMiB});
  // "work" is alive when a second step should begin.
  const std::vector<const Plan*> twice = {&init.plan, &step.plan, &step.plan};
  CHECK(contains(error_of([&] { device_bytes_needed(plans, twice); }), "buffer \"work\" is alive and not expected"));
  step.release({1});
  step.op(OpKind::allocate, kCompute, step.buffer("late", 42 * kMiB));
  CHECK(device_bytes_needed(plans, plans) == Bytes{(30 + 40 + 42) * kMiB});
}

TEST_CASE("device memory of a life: a buffer that is gone in the midst of a part goes on from part to part") {
  TidalLife life;
  const std::vector<const Plan*> plans = {&life.init.plan, &life.step.plan, &life.save.plan};
  const std::vector<const Plan*> order = {&life.init.plan, &life.step.plan, &life.step.plan, &life.save.plan,
                                          &life.step.plan};
  CHECK(carry_over(life.step.plan, {true, true, false, false}, life.save.plan, Carry::between_parts) ==
        std::vector<BufferId>{BufferId::none(), {1}, {0}});
  // In the midst of a step without it, nothing of it is alive; with it, a skip goes on where it lies.
  const auto skip = carry_over(life.step.plan, {true, false, false, true}, life.skip.plan, Carry::behind_decision);
  CHECK_FALSE(skip[1].valid());
  CHECK(skip[3] == BufferId{3});
  // The same through the caching allocator, where nothing is packed: small blocks share a segment of 2 MiB.
  for (Draft* draft : {&life.init, &life.step, &life.save})
    for (Buffer& buffer : draft->plan.buffers) buffer.packed = false;
  CHECK(device_bytes_needed(plans, order) == Bytes{2 * kMiB});
  // Left away at the end of a step, it is missed by name.
  life.step.release({1});
  CHECK(contains(error_of([&] { device_bytes_needed(plans, order); }), "buffer \"tail\" should be alive"));
}

TEST_CASE("device memory of a life: storage that a copy still reads at a part's end is free in the next") {
  Draft first(LifePart::init), second(LifePart::step);
  first.buffer("params", kMiB, true);
  const BufferId staged = first.buffer("staged", 40 * kMiB);
  first.allocate(staged);
  const OpId copy = first.op(OpKind::copy_d2h, kD2h, staged, {{0}});
  first.release(staged, copy);
  second.buffer("params", kMiB, true);
  second.allocate(second.buffer("work", 40 * kMiB));
  const std::vector<const Plan*> plans = {&first.plan, &second.plan};
  CHECK(device_bytes_needed(plans, plans) == Bytes{(2 + 40) * kMiB});  // params: a segment of small blocks
}

TEST_CASE("torch memory goes on: what is alive is not allocated again, and is released under its new number") {
  const SmallLife life(false);
  Draft init = life.init, step = life.step;
  TorchMemory torch(program_of(init.plan));
  torch.allocate({1});
  const Program next = program_of(step.plan);
  torch.take_up(next, carry_over(init.plan, {true, true}, step.plan, Carry::between_parts));
  CHECK(torch.peak_allocated() == Bytes{1024 + 512});
  torch.release({1});  // state
  torch.allocate({3});
  CHECK(torch.peak_allocated() == Bytes{1024 + 2048});
}

TEST_CASE("issue plans of a step and its skip: up to the decision both record what either waits for") {
  const auto draft = [](LifePart part, bool waits_for_copy) {
    Draft made(part);
    const BufferId b = made.buffer("b", 8, true);
    const OpId copy = made.op(OpKind::copy_d2h, kD2h, b);
    const OpId kernel = made.op(OpKind::kernel, kCompute, b);
    made.op(OpKind::host_wait, kHost, b, {kernel});
    made.op(OpKind::kernel, kCompute, b, waits_for_copy ? std::vector{copy} : std::vector<OpId>{});
    return made;
  };
  const Draft step = draft(LifePart::step, false), skip = draft(LifePart::skip, true);
  IssuePlan a = issue_plan(step.plan), b = issue_plan(skip.plan);
  CHECK(!a.steps[0].event_used);
  CHECK(b.steps[0].event_used);
  share_prefix(a, b, 3);
  CHECK(a.steps[0].event_used);
  CHECK(a.steps[1].event_used);
  CHECK(b.steps[1].event_used);
  CHECK(!a.steps[3].event_used);
}
