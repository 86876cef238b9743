// What torch would show for a plan: tensor by tensor, on a plan whose sums are done by hand, and against the planner's
// own bytes of state for every policy.
#include "replay/torch_memory.hpp"

#include <vector>

#include "models/memory/torch_allocator.hpp"
#include "replay/device_memory.hpp"
#include "tests/catch.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

/// Two shards of 1000 and 300 elements with bf16 moments and fp32 masters; one buffer holds all state of both, one the
/// last 700 elements' masters, one is of another kind.
Plan small_plan() {
  Plan plan;
  plan.precision.exp_avg = plan.precision.exp_avg_sq = Dtype::bf16;
  plan.precision.master = Dtype::fp32;
  plan.precision.remainders = false;
  plan.shards = {{"a", {1000}, {0}}, {"b", {300}, {1000}}};
  plan.streams = {{"compute", StreamKind::compute}, {"d2h", StreamKind::d2h}};
  Buffer state;
  state.role = Role::state;
  state.states = kAllState;
  state.holds = {0, 1300};
  state.bytes = {4096 + 1536 + 2 * 2048 + 2 * 1024};
  Buffer masters = state;
  masters.states = kMaster;
  masters.holds = {600, 1300};
  masters.bytes = {2048 + 1536};
  Buffer other;
  other.bytes = {3000};
  other.initial = true;
  plan.buffers = {state, masters, other};
  return plan;
}

Program program_of(const Plan& plan, std::vector<std::uint32_t> tensors) {
  Program program;
  program.plan = &plan;
  program.tensors = std::move(tensors);
  return program;
}

}  // namespace

TEST_CASE("torch memory: a buffer of state is a tensor a shard and state, another one equal tensors") {
  const Plan plan = small_plan();
  const Program program = program_of(plan, {6, 2, 3});
  CHECK(tensors_of(program, {0}) == std::vector<Bytes>{{4000}, {1200}, {2000}, {2000}, {600}, {600}});
  CHECK(tensors_of(program, {1}) == std::vector<Bytes>{{1600}, {1200}});
  CHECK(tensors_of(program, {2}) == std::vector<Bytes>{{1024}, {1024}, {952}});
}

TEST_CASE("torch memory: peaks are those of the tensors, rounded one by one") {
  const Plan plan = small_plan();
  TorchMemory torch(program_of(plan, {6, 2, 3}));
  CHECK(torch.peak_allocated() == Bytes{3072});
  torch.allocate({0});
  CHECK(torch.peak_allocated() == Bytes{3072 + 4096 + 1536 + 2 * 2048 + 2 * 1024});
  torch.release({0}, 7);
  torch.allocate({1});
  CHECK(torch.peak_allocated() == Bytes{3072 + 11776});
  CHECK(torch.peak_reserved() == Bytes{2 * kMiB});
}

TEST_CASE("torch memory: storage whose use has not ended is not reused") {
  Plan plan = small_plan();
  plan.buffers[2].bytes = {30 * kMiB};
  plan.buffers.push_back(plan.buffers[2]);
  plan.buffers[3].initial = false;
  for (const bool ended : {false, true}) {
    TorchMemory torch(program_of(plan, {6, 2, 1, 1}));
    torch.release({2}, 5);
    if (ended) torch.end(5);
    torch.allocate({3});
    CHECK(torch.peak_reserved() == Bytes{ended ? 30 * kMiB : 60 * kMiB});
    CHECK(torch.peak_allocated() == Bytes{30 * kMiB});
  }
}

TEST_CASE("torch memory: for every policy the tensors of a buffer of state cost what the planner gave the buffer") {
  int buffers = 0;
  for (const test::ReplayJob& what : test::replay_jobs()) {
    const Plan resident = host_plans(what.job, {.policy = Policy::resident}).plans.front();
    for (const Candidate& candidate : test::replay_candidates(test::owned_of(resident))) {
      if (!test::comparable(what.job, candidate)) continue;
      INFO(what.name << ", " << test::text_of(candidate));
      const Plan plan = host_plans(what.job, candidate).plans.front();
      const Program program = compile(plan, "plan.json");
      for (std::uint32_t b = 0; b < plan.buffers.size(); ++b) {
        const Buffer& buffer = plan.buffers[b];
        if (buffer.role != Role::state || buffer.memory != Memory::device) continue;
        Bytes sum{0};
        for (const Bytes bytes : tensors_of(program, {b})) sum += memory::allocated_bytes(bytes);
        INFO(buffer.name);
        CHECK(sum == memory::allocated_bytes(buffer.bytes));
        ++buffers;
      }
    }
  }
  CHECK(buffers > 100);
}

TEST_CASE("device memory needed: cached storage counts once where its last use has ended before, twice where not") {
  Plan plan;
  plan.streams = {{"compute", StreamKind::compute}, {"d2h", StreamKind::d2h}};
  Buffer buffer;
  buffer.bytes = {30 * kMiB};
  plan.buffers = {buffer, buffer};
  plan.buffers[0].initial = true;
  Op copy;
  copy.kind = OpKind::copy_d2h;
  copy.stream = {1};
  Op release;
  release.kind = OpKind::release;
  release.stream = {0};
  release.buffer = {0};
  release.after = {0};
  Op allocate = release;
  allocate.kind = OpKind::allocate;
  allocate.buffer = {1};
  allocate.after = OpId::none();
  plan.ops = {copy, release, allocate};
  const Program program = program_of(plan, {1, 1});
  CHECK(device_bytes_needed(program) == Bytes{60 * kMiB});
  plan.deps = {{0}};
  plan.ops[2].deps_count = 1;  // the allocation waits for the copy
  CHECK(device_bytes_needed(program) == Bytes{30 * kMiB});
  plan.ops[2].deps_count = 0;
  plan.ops[1].after = OpId::none();
  CHECK(device_bytes_needed(program) == Bytes{30 * kMiB});
}

TEST_CASE("torch memory: a buffer that comes back counts once, while its last life's storage waits for a copy, too") {
  Plan plan = small_plan();
  plan.buffers[2].bytes = {30 * kMiB};
  for (const bool ended : {false, true}) {
    TorchMemory torch(program_of(plan, {6, 2, 1}));
    torch.release({2}, 5);
    if (ended) torch.end(5);
    torch.allocate({2});
    CHECK(torch.peak_allocated() == Bytes{30 * kMiB});
    CHECK(torch.peak_reserved() == Bytes{(ended ? 30 : 60) * kMiB});
    if (!ended) torch.end(5);
    torch.release({2});
    torch.allocate({2});
    CHECK(torch.peak_reserved() == Bytes{(ended ? 30 : 60) * kMiB});
  }
}
