// reference(): every policy gives the bits of resident, in program order and in all held-back orders.
#include "replay/reference.hpp"

#include "tests/catch.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

bool same_numbers(const std::vector<RankNumbers>& a, const std::vector<RankNumbers>& b) {
  for (std::size_t r = 0; r < a.size(); ++r)
    if (a[r].steps != b[r].steps || a[r].final_state != b[r].final_state) return false;
  return a.size() == b.size();
}

void check_all_orders(const std::string& name, const Job& job, const std::vector<Candidate>& candidates) {
  const std::vector<Plan> plans = host_plans(job, {.policy = Policy::resident}).plans;
  const std::vector<RankNumbers> good = reference(compile_all(plans), {.steps = 2});
  for (const Candidate& candidate : candidates) {
    if (!comparable(job, candidate)) continue;
    INFO(name << ", " << text_of(candidate));
    const std::vector<Plan> other = host_plans(job, candidate).plans;
    const std::vector<Program> programs = compile_all(other);
    const std::vector<ReferenceOptions> orders = all_orders(programs.size(), {}, 2);
    const std::vector<std::vector<RankNumbers>> runs = references(programs, orders);
    for (std::size_t i = 0; i < orders.size(); ++i) {
      const ReferenceOptions& order = orders[i];
      INFO((order.held_back ? name_of(*order.held_back) : "program order") << ", most on " << order.most_on);
      const std::vector<RankNumbers>& numbers = runs[i];
      CHECK(same_numbers(good, numbers));
      for (const RankNumbers& rank : numbers) CHECK(rank.strays == 0);
    }
  }
}

}  // namespace

TEST_CASE("Every policy gives the bits of resident, whatever stream is held back") {
  for (const ReplayJob& what : replay_jobs()) {
    const std::vector<Plan> plans = host_plans(what.job, {.policy = Policy::resident}).plans;
    check_all_orders(what.name, what.job, replay_candidates(owned_of(plans.front())));
  }
}

TEST_CASE("windowed does so with several chunks, with dense and expert managers, and with state that stays") {
  for (const ReplayJob& what : windowed_jobs()) {
    const Plan plan = host_plans(what.job, {.policy = Policy::windowed, .chunk_size_mb = 1}).plans.front();
    CHECK(plan.ops.back().stream.index < plan.streams.size());
    std::uint32_t chunks = 0;
    for (const Op& op : plan.ops)
      if (op.kind == OpKind::kernel && op.work == Work::adam) ++chunks;
    CHECK(chunks >= 3);
    check_all_orders(what.name, what.job,
                     {{.policy = Policy::windowed, .chunk_size_mb = 1},
                      {.policy = Policy::windowed, .chunk_size_mb = 1, .fraction = 0.6}});
  }
}

TEST_CASE("Ranks that are not in the file are refused, and a collective that nobody else joins is a deadlock") {
  Job job = tiny_job();
  job.parallel.gpus = 2;
  std::vector<Plan> plans = host_plans(job, {.policy = Policy::resident}).plans;
  CHECK_THROWS_WITH(reference(compile_all({plans.front()}), {.steps = 1}),
                    Catch::Contains("rank 1, whose plan is not here"));

  // Rank 1 leaves out its last collective of gradients.
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < plans[1].ops.size(); ++i)
    if (plans[1].ops[i].kind == OpKind::collective) last = i;
  plans[1].ops[last].kind = OpKind::host_wait;
  plans[1].ops[last].work = Work::none;
  CHECK_THROWS_WITH(reference(compile_all(plans), {.steps = 1}),
                    Catch::Contains("deadlock: rank 0, op " + std::to_string(last)) &&
                        Catch::Contains("waits for rank 1, which has ended its step"));
}
