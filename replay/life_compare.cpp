#include "replay/life_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/errors.hpp"

namespace ebb::replay {

namespace {

/// Equal bits, or both nan: which nan is no part of the contract.
bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::string step_difference(const StepNumbers& expected, const StepNumbers& found) {
  if (!same(expected.loss, found.loss)) return fmt::format("loss {} instead of {}", found.loss, expected.loss);
  if (!same(expected.sum_of_squares, found.sum_of_squares))
    return fmt::format("squared gradient norm {} instead of {}", found.sum_of_squares, expected.sum_of_squares);
  if (expected.skipped != found.skipped) return found.skipped ? "skipped" : "not skipped";
  if (expected.digest != found.digest)
    return fmt::format("state digest {:016x} instead of {:016x}", found.digest, expected.digest);
  if (expected.loss_scale != found.loss_scale)
    return fmt::format("loss scale {} instead of {}", found.loss_scale, expected.loss_scale);
  return "";
}

std::string end_difference(const LifeNumbers& expected, const LifeNumbers& found) {
  if (expected.final_state != found.final_state)
    return fmt::format("final state {:016x} instead of {:016x}", found.final_state, expected.final_state);
  if (expected.parameters != found.parameters)
    return fmt::format("parameters {:016x} instead of {:016x}", found.parameters, expected.parameters);
  const TrainingPlace& a = expected.place;
  const TrainingPlace& b = found.place;
  if (a == b) return "";
  return fmt::format(
      "it stands at step {} ({} of Adam), seed {:016x}, loss scale {}, {} good steps, hysteresis {} instead of step {} "
      "({} of Adam), seed {:016x}, loss scale {}, {} good steps, hysteresis {}",
      b.steps, b.adam_steps, b.seed, b.loss_scale, b.good_steps, b.hysteresis, a.steps, a.adam_steps, a.seed,
      a.loss_scale, a.good_steps, a.hysteresis);
}

const LegRecord& counterpart(const LifeRecord& baseline, LegKind kind) {
  const LegKind wanted = kind == LegKind::resumed ? LegKind::own : kind;
  const auto found =
      std::find_if(baseline.begin(), baseline.end(), [&](const LegRecord& leg) { return leg.kind == wanted; });
  EBB_ASSERT(found != baseline.end());
  return *found;
}

std::string leg_difference(const LegRecord& baseline, const LegRecord& leg) {
  EBB_ASSERT(baseline.ranks == leg.ranks);
  if (leg.numbers.size() != leg.ranks.size() || baseline.numbers.size() != leg.ranks.size())
    return fmt::format("{}: numbers of {} ranks instead of {}", name_of(leg.kind), leg.numbers.size(),
                       leg.ranks.size());
  for (std::size_t r = 0; r < leg.ranks.size(); ++r) {
    const LifeNumbers& expected = baseline.numbers[r];
    const LifeNumbers& found = leg.numbers[r];
    const std::string where = fmt::format("{}, rank {}", name_of(leg.kind), leg.ranks[r]);
    if (found.strays > 0)
      return fmt::format("{}: {} accesses to memory that was not allocated then", where, found.strays);
    if (found.steps.size() != leg.taken.size() || expected.steps.size() != baseline.taken.size())
      return fmt::format("{}: {} steps instead of {}", where, found.steps.size(), leg.taken.size());
    for (std::size_t i = 0; i < leg.taken.size(); ++i) {
      const auto at = std::find(baseline.taken.begin(), baseline.taken.end(), leg.taken[i]);
      EBB_ASSERT(at != baseline.taken.end());
      const auto step = static_cast<std::size_t>(at - baseline.taken.begin());
      if (const std::string text = step_difference(expected.steps[step], found.steps[i]); !text.empty())
        return fmt::format("{}, step {}: {}", where, leg.taken[i], text);
    }
    if (leg.taken.back() != baseline.taken.back()) continue;
    if (const std::string text = end_difference(expected, found); !text.empty())
      return fmt::format("{}, at its end: {}", where, text);
  }
  return "";
}

constexpr const char* kStates[] = {"exp_avg", "exp_avg_sq", "master", "param"};

}  // namespace

std::string difference(const LifeRecord& baseline, const LifeRecord& life) {
  for (const LegRecord& leg : life)
    if (const std::string text = leg_difference(counterpart(baseline, leg.kind), leg); !text.empty()) return text;
  return "";
}

std::string content_difference(const LifeRecord& one, const LifeRecord& other) {
  std::map<std::int64_t, SavedState> first;  // by step
  for (const LifeRecord* life : {&one, &other}) {
    for (const LegRecord& leg : *life) {
      for (const SavedState& saved : leg.saved) {
        const SavedState& known = first.try_emplace(saved.step, saved).first->second;
        for (std::size_t state = 0; state < saved.content.size(); ++state)
          if (known.content[state] != saved.content[state])
            return fmt::format("the checkpoint of step {} ({}): {} has the content {:016x} instead of {:016x}",
                               saved.step, name_of(leg.kind), kStates[state], saved.content[state],
                               known.content[state]);
      }
    }
  }
  return "";
}

std::string skip_difference(const LifeRecord& baseline, const LifeShape& shape, bool loss_scaling) {
  for (const LegRecord& leg : baseline) {
    if (leg.kind == LegKind::fresh) continue;
    for (std::size_t r = 0; r < leg.numbers.size(); ++r) {
      for (std::size_t i = 0; i < std::min(leg.taken.size(), leg.numbers[r].steps.size()); ++i) {
        const bool wanted = std::find(shape.skips.begin(), shape.skips.end(), leg.taken[i]) != shape.skips.end();
        const bool found = leg.numbers[r].steps[i].skipped;
        if (found == wanted || (found && loss_scaling)) continue;
        return fmt::format(
            "{}, rank {}, step {}: {}", name_of(leg.kind), leg.ranks[r], leg.taken[i],
            found ? "skipped, though its gradients were not spoiled" : "not skipped, though a gradient was spoiled");
      }
    }
  }
  return "";
}

}  // namespace ebb::replay
