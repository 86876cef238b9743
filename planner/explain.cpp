#include "planner/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "planner/explain_parts.hpp"

namespace ebb {

std::string text_of(const Candidate& candidate) {
  const std::string name(name_of(candidate.policy));
  const auto percent = [&] { return fmt::format("{:.0f} %", candidate.fraction * 100); };
  switch (candidate.policy) {
    case Policy::resident:
    case Policy::full_reload:
      return name;
    case Policy::chunked:
      return fmt::format("{} {}", name, candidate.chunk_numel.value);
    case Policy::windowed:
      return fmt::format("{} {} MiB{}, {}", name, candidate.chunk_size_mb,
                         candidate.chunk_size_mb == 0 ? " (all at once)" : "", percent());
    case Policy::cpu_adam:
      return fmt::format("{} {}", name, percent());
    case Policy::pipelined:
      return fmt::format("{} {} x {}", name, candidate.slots, candidate.chunk_numel.value);
    case Policy::tidal:
      return fmt::format("{} {}", name, candidate.chunk_numel.value);
  }
  return name;
}

reports::Explanation explain(const Job& job, const Answer& answer, const std::optional<Answer>& recommended,
                             const SearchOptions& how, std::optional<Start> also_as) {
  Evaluator evaluator(job);
  reports::Explanation result;
  const SlowestRank slowest = evaluator.slowest(answer.candidate);
  explain_path(job, evaluator.ranks()[slowest.rank], slowest, result);
  result.optimizer = answer.optimizer;
  result.added = {std::max(answer.step.value - evaluator.answer(Candidate{}).step.value, 0.0)};
  result.bounds = step_bounds(job, slowest);
  result.memory = memory_bound(evaluator, answer);
  result.neighbours = neighbours_of(evaluator, answer);
  result.shard = shard_limit(evaluator, answer.candidate);
  result.tide = tide_of(evaluator, answer);
  result.what_ifs = what_ifs(job, recommended, how, also_as);
  return result;
}

}  // namespace ebb
