// Plans with one dependency dropped. What planner/verify calls a hazard, the reference must show in at least one order
// (other numbers, poison, a stray access, ranks that wait for ever), but for what provably changes no number; what
// verify calls harmless must change nothing in any order.
#include "models/errors.hpp"
#include "planner/verify.hpp"
#include "replay/reference.hpp"
#include "tests/catch.hpp"
#include "tests/replay/mutants.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

constexpr int kSteps = 2;
Job smallest(const std::string& file, int gpus) {
  Job job = tiny_job(file);
  job.parallel.gpus = gpus;
  job.model.layers = 1;
  job.model.hidden = 16;
  job.model.ffn = 32;
  job.model.heads = 2;
  job.model.kv_heads = 1;
  job.model.vocab = 64;
  if (job.model.moe) job.model.moe->ffn = 16;
  return job;
}

bool differs(const std::vector<RankNumbers>& good, const std::vector<RankNumbers>& bad) {
  for (std::size_t r = 0; r < good.size(); ++r)
    if (!(good[r].steps == bad[r].steps) || good[r].final_state != bad[r].final_state || bad[r].strays > 0) return true;
  return false;
}

bool shows(const std::vector<Plan>& plans, const std::vector<RankNumbers>& good) {
  for (const ReferenceOptions& order : all_orders(plans.size(), {}, kSteps)) {
    try {
      if (differs(good, reference(compile_all(plans), order))) return true;
    } catch (const InputError&) {
      return true;  // ranks wait for each other
    }
  }
  return false;
}

/// An order of issue on the host, not of data: whatever the op does early, the host op before it touches nothing of it.
bool is_issue_order(const Hazard& hazard) { return hazard.kind == HazardKind::issued_early; }

struct Count {
  int hazards = 0;
  int caught = 0;
  int harmless = 0;
  int issue_order = 0;
};

void drop_each(const std::string& name, const std::vector<Plan>& plans, Count& count) {
  const std::vector<RankNumbers> good = reference(compile_all(plans), {.steps = kSteps});
  REQUIRE_FALSE(differs(good, good));
  REQUIRE(verify(plans.front()).empty());
  std::vector<Plan> mutants = plans;
  for (std::uint32_t drop = 0; drop < plans.front().deps.size(); ++drop) {
    mutants.front() = without(plans.front(), drop);
    const std::vector<Hazard> hazards = verify(mutants.front());
    const bool shown = shows(mutants, good);
    if (hazards.empty()) {
      INFO(name << ", dependency " << drop << " is not needed");
      CHECK_FALSE(shown);
      ++count.harmless;
      continue;
    }
    ++count.hazards;
    if (shown) {
      ++count.caught;
      continue;
    }
    ++count.issue_order;
    for (const Hazard& hazard : hazards) {
      INFO(name << ", dependency " << drop << ": " << hazard.text);
      CHECK(is_issue_order(hazard));
    }
  }
}

}  // namespace

TEST_CASE("A dropped dependency that verify reports changes numbers in some order, one that it does not changes none") {
  Count count;
  for (const auto& [file, gpus] : {std::pair("tiny", 1), std::pair("tiny", 2), std::pair("tiny-moe", 2)}) {
    const Job job = smallest(file, gpus);
    const std::int64_t owned = owned_of(host_plans(job, {.policy = Policy::resident}).plans.front());
    std::vector<Candidate> candidates = replay_candidates(owned);
    candidates.push_back({.policy = Policy::resident});
    for (const Candidate& candidate : candidates) {
      const std::string name = std::string(file) + " on " + std::to_string(gpus) + ", " + text_of(candidate);
      drop_each(name, host_plans(job, candidate).plans, count);
    }
  }
  for (const ReplayJob& wide : windowed_jobs()) {
    const Candidate candidate{.policy = Policy::windowed, .chunk_size_mb = 1, .fraction = 0.6};
    if (wide.job.parallel.gpus == 1) drop_each(wide.name, host_plans(wide.job, candidate).plans, count);
  }
  WARN(count.caught << " of " << count.hazards << " hazardous mutants caught, the other " << count.issue_order
                    << " only change the order of issue; " << count.harmless << " harmless ones unchanged");
  CHECK(count.hazards > 300);
  CHECK(count.caught > 9 * count.issue_order);
  CHECK(count.harmless == 0);  // the planner writes no dependency that another one implies
}
