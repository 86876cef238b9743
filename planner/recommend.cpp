#include "planner/recommend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "models/quantity_text.hpp"

namespace ebb {

namespace {

/// What decides between answers whose steps count as equal.
auto equal_steps_key(const Answer& answer) {
  return std::tuple(answer.device_reserved, answer.device_peak, answer.step, answer.candidate);
}

template <class Eligible>
std::optional<std::size_t> fastest(std::span<const Answer> answers, const Eligible& eligible) {
  std::optional<double> shortest;
  for (const Answer& answer : answers)
    if (eligible(answer)) shortest = std::min(shortest.value_or(answer.step.value), answer.step.value);
  if (!shortest) return std::nullopt;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!eligible(answers[i]) || answers[i].step.value > *shortest * (1 + kEqualSteps)) continue;
    if (!best || equal_steps_key(answers[i]) < equal_steps_key(answers[*best])) best = i;
  }
  return best;
}

Bytes excess(Bytes used, Bytes budget) { return std::max(used - budget, Bytes{0}); }

}  // namespace

std::optional<std::size_t> fastest_feasible(std::span<const Answer> answers) {
  return fastest(answers, [](const Answer& answer) { return answer.feasible(); });
}

std::size_t nearest_to_feasible(std::span<const Answer> answers, Bytes device_budget, Bytes host_budget) {
  EBB_ASSERT(!answers.empty());
  const auto key = [&](const Answer& answer) {
    const Bytes device = excess(answer.device_reserved, device_budget);
    const Bytes host = excess(answer.host_pinned_per_host, host_budget);
    return std::tuple(device + host, answer.device_reserved, answer.step, answer.candidate);
  };
  const auto nearest = std::min_element(answers.begin(), answers.end(),
                                        [&](const Answer& a, const Answer& b) { return key(a) < key(b); });
  return static_cast<std::size_t>(nearest - answers.begin());
}

std::optional<std::size_t> recommend(std::span<const Answer> answers, std::optional<Policy> fixed) {
  const auto eligible = [&](const Answer& answer) {
    return answer.deployable && answer.feasible() && (!fixed || answer.candidate.policy == *fixed);
  };
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answers[i].candidate.policy == Policy::resident && eligible(answers[i])) return i;
  return fastest(answers, eligible);
}

std::string reason_for(const SearchResult& result) {
  EBB_ASSERT(result.recommended.has_value());
  const Answer& pick = result.candidates[*result.recommended];
  if (pick.candidate.policy == Policy::resident)
    return fmt::format("all optimizer state fits in device memory: {} reserved at most, of a budget of {}; nothing has "
                       "to move",
                       format_bytes(pick.device_reserved), format_bytes(result.device_budget));
  const auto resident = std::find_if(result.candidates.begin(), result.candidates.end(), [](const Answer& answer) {
    return answer.candidate.policy == Policy::resident;
  });
  std::string why;
  if (resident != result.candidates.end() && !resident->fits_device)
    why = fmt::format("resident state would reserve up to {}, {} over the budget; ",
                      format_bytes(resident->device_reserved),
                      format_bytes(resident->device_reserved - result.device_budget));
  return why + fmt::format("{} is the fastest schedule that you can deploy and that fits ({} reserved at most, of a "
                           "budget of {}), at {:.2f} times the resident step",
                           name_of(pick.candidate.policy), format_bytes(pick.device_reserved),
                           format_bytes(result.device_budget), pick.slowdown);
}

std::string obstacle_of(const Answer& answer, Bytes device_budget, Bytes host_budget) {
  if (!answer.fits_device)
    return fmt::format("over the device budget by {}", format_bytes(answer.device_reserved - device_budget));
  if (!answer.fits_host)
    return fmt::format("over the host budget by {}", format_bytes(answer.host_pinned_per_host - host_budget));
  if (!answer.objection.empty()) return answer.objection;
  if (answer.requires_megatron == "ebb") return "runs on Ebb's own runtime only";
  if (!answer.deployable) return fmt::format("needs Megatron {}", answer.requires_megatron);
  return "";
}

}  // namespace ebb
