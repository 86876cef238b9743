#include "planner/recommend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

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

std::optional<std::size_t> recommend(std::span<const Answer> answers, std::optional<Policy> fixed) {
  const auto eligible = [&](const Answer& answer) {
    return answer.deployable && answer.feasible() && (!fixed || answer.candidate.policy == *fixed);
  };
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answers[i].candidate.policy == Policy::resident && eligible(answers[i])) return i;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (eligible(answers[i]) && (!best || faster(answers[i], answers[*best]))) best = i;
  return best;
}

namespace {

/// " while it loads its checkpoint", where that decides.
std::string_view where(const Answer& answer) {
  if (answer.decides == Phase::load) return " while its checkpoint is loaded";
  if (answer.decides == Phase::save) return " while a checkpoint is saved";
  return "";
}

}  // namespace

std::string reason_for(const SearchResult& result) {
  EBB_ASSERT(result.recommended.has_value());
  const Answer& pick = result.candidates[*result.recommended];
  if (pick.candidate.policy == Policy::resident)
    return fmt::format(
        "all optimizer state fits in device memory: {} reserved at most{}, of a budget of {}; nothing has "
        "to move",
        format_bytes(pick.device_reserved), where(pick), format_bytes(result.device_budget));
  const auto resident = std::find_if(result.candidates.begin(), result.candidates.end(),
                                     [](const Answer& answer) { return answer.candidate.policy == Policy::resident; });
  std::string why;
  if (resident != result.candidates.end() && !resident->fits_device)
    why = fmt::format("resident state would reserve up to {}{}, {} over the budget; ",
                      format_bytes(resident->device_reserved), where(*resident),
                      format_bytes(resident->device_reserved - result.device_budget));
  if (result.fixed && resident != result.candidates.end() && resident->feasible()) why = "resident would fit; ";
  return why + fmt::format(
                   "{} is the {} ({} reserved at most{}, of a "
                   "budget of {}), at {:.3f} times the resident step",
                   name_of(pick.candidate.policy),
                   result.fixed ? "policy that the job asks for, and this its fastest schedule that fits"
                                : "fastest schedule that you can deploy and that fits",
                   format_bytes(pick.device_reserved), where(pick), format_bytes(result.device_budget), pick.slowdown);
}

std::string host_need_of(const Answer& answer) {
  return fmt::format("needs {} of a host's memory, pinned and pageable, more than it has",
                     format_bytes(answer.host_pinned_per_host + answer.host_pageable_per_host));
}

std::string obstacle_of(const Answer& answer, Bytes device_budget, Bytes host_budget) {
  if (!answer.fits_device)
    return fmt::format("over the device budget by {}{}", format_bytes(answer.device_reserved - device_budget),
                       where(answer));
  if (!answer.fits_host && answer.host_pinned_per_host > host_budget)
    return fmt::format("over the host budget by {}", format_bytes(answer.host_pinned_per_host - host_budget));
  if (!answer.fits_host) return host_need_of(answer);
  if (!answer.objection.empty()) return answer.objection;
  if (answer.requires_megatron == "ebb") return "runs on Ebb's own runtime only";
  if (!answer.deployable) return fmt::format("needs Megatron {}", answer.requires_megatron);
  return "";
}

}  // namespace ebb
