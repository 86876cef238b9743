#include "planner/recommend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"

namespace ebb {

std::int64_t thousandths(double slowdown) {
  // Forgive the last bits: 1.002 is 2 thousandths over, however it was computed.
  return static_cast<std::int64_t>(std::ceil(slowdown * 1000 - 1e-6));
}

namespace {

auto speed_key(const Answer& a) {
  return std::tuple(thousandths(a.slowdown), a.device_reserved, a.device_peak, a.step, a.candidate);
}

auto size_key(const Answer& a) {
  return std::tuple(a.device_reserved, thousandths(a.slowdown), a.device_peak, a.step, a.candidate);
}

}  // namespace

bool faster(const Answer& a, const Answer& b) { return speed_key(a) < speed_key(b); }
bool smaller(const Answer& a, const Answer& b) { return size_key(a) < size_key(b); }

namespace {

constexpr std::array kObjectives = {Objective::step, Objective::memory, Objective::balanced};
constexpr std::int64_t kBalancedPercent = 2;

}  // namespace

std::string_view name_of(Objective objective) {
  switch (objective) {
    case Objective::step:
      return "step";
    case Objective::memory:
      return "memory";
    case Objective::balanced:
      return "balanced";
  }
  return "";
}

std::vector<std::string_view> objective_words() {
  std::vector<std::string_view> words;
  for (const Objective objective : kObjectives) words.push_back(name_of(objective));
  return words;
}

std::optional<Objective> objective_named(std::string_view word) {
  for (const Objective objective : kObjectives)
    if (name_of(objective) == word) return objective;
  return std::nullopt;
}

std::int64_t balanced_limit(std::int64_t fastest) { return fastest + fastest * kBalancedPercent / 100; }

namespace {

std::vector<std::size_t> eligible_of(std::span<const Answer> answers, std::optional<Policy> fixed) {
  std::vector<std::size_t> eligible;
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (in_question(answers[i], fixed) && answers[i].feasible()) eligible.push_back(i);
  return eligible;
}

}  // namespace

bool asked_for_by_name(Policy policy, std::optional<Policy> fixed) {
  return fixed == policy && requirement_of(policy) == "ebb";
}

bool in_question(const Answer& answer, std::optional<Policy> fixed) {
  const Policy policy = answer.candidate.policy;
  if (fixed && policy != *fixed) return false;
  return answer.deployable || (asked_for_by_name(policy, fixed) && answer.objection.empty());
}

std::optional<std::size_t> fastest_of(std::span<const Answer> answers, std::optional<Policy> fixed) {
  std::optional<std::size_t> fastest;
  for (const std::size_t i : eligible_of(answers, fixed))
    if (!fastest || faster(answers[i], answers[*fastest])) fastest = i;
  return fastest;
}

std::optional<std::size_t> recommend(std::span<const Answer> answers, std::optional<Policy> fixed,
                                     Objective objective) {
  const std::optional<std::size_t> fastest = fastest_of(answers, fixed);
  if (!fastest) return std::nullopt;
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
  if (objective == Objective::balanced) slowest = balanced_limit(thousandths(answers[*fastest].slowdown));
  std::optional<std::size_t> smallest;
  for (const std::size_t i : eligible_of(answers, fixed)) {
    if (objective == Objective::step && answers[i].candidate.policy == Policy::resident) return i;
    if (thousandths(answers[i].slowdown) > slowest) continue;
    if (!smallest || smaller(answers[i], answers[*smallest])) smallest = i;
  }
  return objective == Objective::step ? fastest : smallest;
}

std::string_view when_decided(const Answer& answer) {
  if (answer.decides == Phase::load) return " while its checkpoint is loaded";
  if (answer.decides == Phase::save) return " while a checkpoint is saved";
  return "";
}

namespace {

/// What the pick is, of those that could have been.
std::string merit_of(const SearchResult& result) {
  const std::string_view whose = result.fixed ? "that the job asks for" : "that you can deploy";
  switch (result.objective) {
    case Objective::memory:
      return fmt::format("needs the least device memory of the schedules {} and that fit", whose);
    case Objective::balanced:
      return fmt::format("needs the least device memory of the schedules {} within {} % of the fastest step that fits",
                         whose, kBalancedPercent);
    case Objective::step:
      break;
  }
  return result.fixed ? "is the policy that the job asks for, and this its fastest schedule that fits"
                      : "is the fastest schedule that you can deploy and that fits";
}

}  // namespace

std::string reason_for(const SearchResult& result) {
  EBB_ASSERT(result.recommended.has_value());
  const Answer& pick = result.candidates[*result.recommended];
  if (pick.candidate.policy == Policy::resident && result.objective == Objective::step)
    return fmt::format(
        "all optimizer state fits in device memory: {} reserved at most{}, of a budget of {}; nothing has "
        "to move",
        format_bytes(pick.device_reserved), when_decided(pick), format_bytes(result.device_budget));
  const auto resident = std::find_if(result.candidates.begin(), result.candidates.end(),
                                     [](const Answer& answer) { return answer.candidate.policy == Policy::resident; });
  std::string why;
  if (resident != result.candidates.end() && !resident->fits_device)
    why = fmt::format("resident state would reserve up to {}{}, {} over the budget; ",
                      format_bytes(resident->device_reserved), when_decided(*resident),
                      format_bytes(resident->device_reserved - result.device_budget));
  if (result.fixed && resident != result.candidates.end() && resident->feasible()) why = "resident would fit; ";
  return why + fmt::format("{} {} ({} reserved at most{}, of a budget of {}), at {:.3f} times the resident step",
                           name_of(pick.candidate.policy), merit_of(result), format_bytes(pick.device_reserved),
                           when_decided(pick), format_bytes(result.device_budget), pick.slowdown);
}

std::string_view when_host_decided(const Answer& answer) {
  if (answer.host_decides == Phase::init) return " while the model is built";
  if (answer.host_decides == Phase::load) return " while its checkpoint is loaded";
  if (answer.host_decides == Phase::save) return " while a checkpoint is saved";
  return "";
}

std::string host_need_of(const Answer& answer) {
  return fmt::format("is over the NUMA budget by {}: pins {} beside one socket, which has {}",
                     format_bytes(answer.host_pinned_per_socket - answer.socket_memory),
                     format_bytes(answer.host_pinned_per_socket), format_bytes(answer.socket_memory));
}

std::string obstacle_of(const Answer& answer, Bytes device_budget, Bytes host_budget) {
  if (!answer.fits_device)
    return fmt::format("over the device budget by {}{}", format_bytes(answer.device_reserved - device_budget),
                       when_decided(answer));
  if (!answer.fits_host && answer.host_needed() > host_budget)
    return fmt::format("over the host budget by {}{}", format_bytes(answer.host_needed() - host_budget),
                       when_host_decided(answer));
  if (!answer.fits_host) return host_need_of(answer);
  if (!answer.objection.empty()) return answer.objection;
  if (answer.requires_megatron == "ebb") return "runs on Ebb's own runtime only";
  if (!answer.deployable) return fmt::format("needs Megatron {}", answer.requires_megatron);
  return "";
}

}  // namespace ebb
