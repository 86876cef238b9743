// reference(): every policy gives the bits of resident, in program order and in all held-back orders.
#include "replay/reference.hpp"

#include "tests/catch.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

constexpr std::optional<StreamKind> kOrders[] = {std::nullopt,    StreamKind::host, StreamKind::compute,
                                                 StreamKind::h2d, StreamKind::d2h,  StreamKind::comm};

bool same_numbers(const std::vector<RankNumbers>& a, const std::vector<RankNumbers>& b) {
  for (std::size_t r = 0; r < a.size(); ++r)
    if (a[r].steps != b[r].steps || a[r].final_state != b[r].final_state) return false;
  return a.size() == b.size();
}

}  // namespace

TEST_CASE("Every policy gives the bits of resident, whatever stream is held back") {
  for (const ReplayJob& what : replay_jobs()) {
    const std::vector<Plan> plans = host_plans(what.job, {.policy = Policy::resident}).plans;
    const std::vector<RankNumbers> good = reference(compile_all(plans), {.steps = 2});
    for (const Candidate& candidate : replay_candidates(owned_of(plans.front()))) {
      if (!comparable(what.job, candidate)) continue;
      INFO(what.name << ", " << text_of(candidate));
      const std::vector<Plan> other = host_plans(what.job, candidate).plans;
      const std::vector<Program> programs = compile_all(other);
      for (const std::optional<StreamKind> order : kOrders) {
        INFO((order ? name_of(*order) : "program order"));
        const std::vector<RankNumbers> numbers = reference(programs, {.steps = 2, .held_back = order});
        CHECK(same_numbers(good, numbers));
        for (const RankNumbers& rank : numbers) CHECK(rank.strays == 0);
      }
    }
  }
}
