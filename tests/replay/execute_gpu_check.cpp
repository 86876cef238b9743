// execute() against reference(): on as many GPUs as there are, every job and policy of replay_cases.hpp must give the
// the reference's numbers bit for bit in every step: plain, as a CUDA graph, and with poisoned memory and one stream
// slowed down, another one from case to case. Needs GPUs, so it is no ctest. Run from the root of the tree:
// execute_gpu_check [GPUS]
#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "replay/execute.hpp"
#include "tests/replay/replay_cases.hpp"

namespace {

using namespace ebb;
using namespace ebb::replay;

constexpr int kSteps = 3;

std::string difference(const RankNumbers& measured, const RankNumbers& expected) {
  for (std::size_t s = 0; s < expected.steps.size(); ++s) {
    const StepNumbers& a = measured.steps[s];
    const StepNumbers& b = expected.steps[s];
    if (a == b) continue;
    return fmt::format("step {}: loss {} and {}, sum of squares {} and {}, digest {:x} and {:x}", s + 1, a.loss, b.loss,
                       a.sum_of_squares, b.sum_of_squares, a.digest, b.digest);
  }
  if (measured.final_state != expected.final_state) return "final state";
  if (measured.peak_live != expected.peak_live)
    return fmt::format("peak of live bytes {} and {}", measured.peak_live.value, expected.peak_live.value);
  return "";
}

/// Empty where all is equal. Collectives of more than two ranks may add in another order than the reference.
std::string check_case(const std::vector<Program>& programs, const std::vector<RankNumbers>& expected,
                       std::optional<StreamKind> slow, bool graph) {
  ExecuteOptions options;
  options.training.digests = true;
  options.warmups = 1;
  options.repeats = kSteps - 1;
  options.compute = false;
  options.link = false;
  options.framework_time = false;
  options.poison = slow.has_value();
  options.slow = slow;
  options.graph = graph;
  const RunResult result = execute(programs, options);
  for (const std::string& remark : result.remarks) fmt::print("    {}\n", remark);
  for (std::size_t r = 0; r < programs.size(); ++r) {
    const std::string text = difference(result.ranks[r].numbers, expected[r]);
    if (!text.empty()) return fmt::format("rank {}: {}", r, text);
  }
  return "";
}

int check_candidate(const std::string& job, const Candidate& candidate, const std::vector<Plan>& plans) {
  const std::vector<Program> programs = test::compile_all(plans);
  ReferenceOptions reference_options;
  reference_options.steps = kSteps;
  const std::vector<RankNumbers> expected = reference(programs, reference_options);
  struct Way {
    const char* name;
    std::optional<StreamKind> slow;
    bool graph = false;
  };
  static constexpr Way kSlow[] = {
      {"slow compute", StreamKind::compute}, {"slow h2d", StreamKind::h2d}, {"slow d2h", StreamKind::d2h}};
  static std::size_t turn = 0;  // each case slows down another stream
  int failed = 0;
  for (const Way& way : {Way{"plain", {}}, Way{"graph", {}, true}, kSlow[turn++ % std::size(kSlow)]}) {
    if (way.graph && candidate.policy != Policy::pipelined && candidate.policy != Policy::resident) continue;
    std::string problem;
    try {
      problem = check_case(programs, expected, way.slow, way.graph);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    fmt::print("{} {}, {}, {}{}\n", problem.empty() ? "ok    " : "FAILED", job, test::text_of(candidate), way.name,
               problem.empty() ? "" : ": " + problem);
    failed += problem.empty() ? 0 : 1;
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  const int gpus = argc > 1 ? std::atoi(argv[1]) : 1;
  int failed = 0;
  for (const test::ReplayJob& job : test::replay_jobs()) {
    if (job.job.parallel.gpus > gpus) continue;
    const std::vector<Plan> resident = host_plans(job.job, {.policy = Policy::resident}).plans;
    failed += check_candidate(job.name, {.policy = Policy::resident}, resident);
    for (const Candidate& candidate : test::replay_candidates(test::owned_of(resident[0]))) {
      std::vector<Plan> plans;
      try {
        plans = host_plans(job.job, candidate).plans;
        test::compile_all(plans);
      } catch (const InputError& error) {
        fmt::print("skip   {}, {}: {}\n", job.name, test::text_of(candidate), error.what());
        continue;
      }
      failed += check_candidate(job.name, candidate, plans);
    }
  }
  fmt::print("{}\n", failed == 0 ? "all equal" : fmt::format("{} cases differ", failed));
  return failed == 0 ? 0 : 1;
}
