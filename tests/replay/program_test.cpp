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
