// compile(): every policy's plans compile, and each byte of every transfer is where the plan's own counts say.
#include "replay/program.hpp"

#include <map>

#include "models/errors.hpp"
#include "tests/catch.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

TEST_CASE("Every policy of every job compiles, with as many transfers as the plan has calls") {
  for (const ReplayJob& what : replay_jobs()) {
    const std::vector<Plan> resident = host_plans(what.job, {.policy = Policy::resident}).plans;
    REQUIRE(compile_all(resident).size() == static_cast<std::size_t>(what.job.parallel.gpus));
    for (const Candidate& candidate : replay_candidates(owned_of(resident.front()))) {
      if (!comparable(what.job, candidate)) continue;
      INFO(what.name << ", " << text_of(candidate));
      const std::vector<Plan> plans = host_plans(what.job, candidate).plans;
      for (const Program& program : compile_all(plans)) {
        CHECK(every_place_is_inside(program));
        for (std::size_t i = 0; i < program.actions.size(); ++i)
          if (const auto* copy = std::get_if<Copy>(&program.actions[i]))
            CHECK(copy->transfers.size() == program.plan->ops[i].calls);
      }
    }
  }
}

TEST_CASE("A chunk lies in its buffer and on the host as the rules of placement say, by hand") {
  // Two shards of 100 and 30 elements; one chunk holds both. fp32: tensors of 400 and 120 bytes at multiples of 256.
  Plan plan;
  plan.buckets = {{Numel{0}, Numel{140}, false}};
  plan.shards = {{"a", {100}, {40}}, {"b", {30}, {0}}};
  plan.streams = {{"host", StreamKind::host}, {"compute", StreamKind::compute}, {"h2d", StreamKind::h2d}};
  plan.buffers = {{.name = "parameters", .bytes = {280}, .initial = true, .role = Role::params},
                  {.name = "gradients", .bytes = {560}, .initial = true, .role = Role::grads},
                  {.name = "host", .memory = Memory::pinned, .bytes = {3 * (512 + 128)}, .initial = true},
                  {.name = "chunk", .bytes = {2304}, .role = Role::state, .states = kAllState, .holds = {0, 130}}};
  const auto add = [&](Op op) { plan.ops.push_back(op); };
  add({.kind = OpKind::allocate, .stream = {1}, .buffer = {3}});
  add({.kind = OpKind::copy_h2d,
       .states = kAllState,
       .stream = {2},
       .calls = 6,
       .buffer = {3},
       .bytes = {130 * 12},
       .range = {0, 130}});
  add({.kind = OpKind::kernel,
       .work = Work::adam,
       .states = kAllState | kGrads,
       .stream = {1},
       .buffer = {3},
       .range = {0, 130}});
  add({.kind = OpKind::release, .stream = {1}, .buffer = {3}});
  const Program program = compile(plan, "plan.json");

  const auto& copy = std::get<Copy>(program.actions[1]);
  // State by state, shard by shard: on the device each at the next multiple of 256, on the host blocks of 512 and 128.
  const std::int64_t device[] = {0, 512, 768, 1280, 1536, 2048};
  const std::int64_t host[] = {0, 512, 640, 1152, 1280, 1792};
  const std::int64_t bytes[] = {400, 120, 400, 120, 400, 120};
  REQUIRE(copy.transfers.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(copy.transfers[i].device.at.value == device[i]);
    CHECK(copy.transfers[i].host_at.value == host[i]);
    CHECK(copy.transfers[i].bytes.value == bytes[i]);
  }
  const auto& adam = std::get<DeviceAdam>(program.actions[2]);
  REQUIRE(adam.runs.size() == 2);
  CHECK(adam.runs[1].elements == ElementRange{100, 130});
  CHECK(adam.runs[1].exp_avg_sq.value == 1280);
  CHECK(adam.runs[0].grad.value == 160);  // the first shard begins at padded element 40
  CHECK(adam.runs[1].grad.value == 0);
  CHECK_FALSE(adam.params.valid());
  CHECK(program.pinned.value == 1920);
  CHECK(program.before.size() == 6);

  // What does not fit is refused, by the op's name.
  const auto refused = [&](auto change, const char* words) {
    Plan bad = plan;
    change(bad);
    CHECK_THROWS_WITH(compile(bad, "plan.json"), Catch::Contains(words));
  };
  refused([](Plan& bad) { bad.buffers[3].bytes = {2167}; }, "op 1 (copy-h2d): buffer \"chunk\" has 2167 bytes");
  refused([](Plan& bad) { bad.buffers[2].bytes = {1919}; }, "host buffers of 1919 B pinned");
  refused([](Plan& bad) { bad.ops[2].range = {0, 131}; }, "op 2 (kernel adam): elements [0, 131)");
  refused([](Plan& bad) { bad.ops[0].kind = OpKind::host_wait; }, "not alive");
  refused([](Plan& bad) { bad.shards[0].at = {41}; }, "shard 0 (\"a\") lies outside");
  refused([](Plan& bad) { bad.shards[1].at = {11}; }, "overlaps");
  refused([](Plan& bad) { bad.buffers[0].role = Role::other; }, "no buffer of role params");
  refused([](Plan& bad) { bad.ops[1].bytes = {1559}; }, "says 1559 bytes, but copies 1560");
  refused([](Plan& bad) { bad.precision.exp_avg = Dtype::fp8, bad.precision.remainders = false; },
          "moments in fp8 are not replayed yet");
  refused([](Plan& bad) { bad.precision.precision_aware = true; }, "16-bit remainders");
  refused([](Plan& bad) { bad.precision.fp8_param_gather = true; }, "quantised weights");
}

TEST_CASE("A packed slot and its region on the host have the same layout, the last partial one too") {
  Job job = tiny_job();
  const Candidate candidate{.policy = Policy::pipelined, .chunk_numel = {5001}, .slots = 3};
  const std::vector<Plan> plans = host_plans(job, candidate).plans;
  const Program program = compile_all(plans).front();
  const std::int64_t owned = owned_of(plans.front());
  CHECK(program.pinned.value == 12 * owned);
  std::int64_t moved = 0;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    const Op& op = plans.front().ops[i];
    if (const auto* copy = std::get_if<Copy>(&program.actions[i])) {
      REQUIRE(copy->transfers.size() == 1);
      CHECK(copy->transfers[0].host_at.value == 12 * op.range.begin);
      CHECK(copy->transfers[0].device.at.value == 0);
      moved += copy->transfers[0].bytes.value;
    }
    if (const auto* adam = std::get_if<DeviceAdam>(&program.actions[i]))
      for (const StateRun& run : adam->runs) {
        CHECK(run.exp_avg.value == 4 * (run.elements.begin - op.range.begin));
        CHECK(run.exp_avg_sq.value == run.exp_avg.value + 4 * op.range.numel().value);
        CHECK(run.master.value == run.exp_avg.value + 8 * op.range.numel().value);
      }
  }
  CHECK(moved == 2 * 12 * owned);
}
