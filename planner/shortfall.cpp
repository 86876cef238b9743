#include "planner/shortfall.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "planner/constraints.hpp"
#include "planner/recommend.hpp"

namespace ebb {

namespace {

Bytes over(Bytes used, Bytes budget) { return std::max(used - budget, Bytes{0}); }

/// nullptr: no candidate is in question at all.
const Answer* nearest_in_question(const SearchResult& result, std::optional<Policy> fixed) {
  const Answer* nearest = nullptr;
  const auto lacks = [&](const Answer& answer) {
    return over(answer.device_reserved, result.device_budget) + over(answer.host_needed(), result.host_budget);
  };
  for (const Answer& answer : result.candidates) {
    if (!in_question(answer, fixed)) continue;
    if (nearest == nullptr || lacks(answer) < lacks(*nearest)) nearest = &answer;
  }
  return nearest;
}

std::string described(const Candidate& candidate) {
  switch (candidate.policy) {
    case Policy::chunked:
      return fmt::format("chunked at chunk-numel {}", candidate.chunk_numel.value);
    case Policy::windowed:
      return fmt::format("windowed at {} MiB, fraction {}", candidate.chunk_size_mb, candidate.fraction);
    case Policy::cpu_adam:
      return fmt::format("cpu-adam, fraction {}", candidate.fraction);
    case Policy::pipelined:
      return fmt::format("pipelined with {} slots of {} elements", candidate.slots, candidate.chunk_numel.value);
    case Policy::tidal:
      return fmt::format("tidal with pieces of {} elements", candidate.chunk_numel.value);
    case Policy::resident:
    case Policy::full_reload:
      break;
  }
  return std::string(name_of(candidate.policy));
}

/// The changed job's recommendation, described; "" when it has none or is no valid job.
std::string cured(const Job& job, SearchOptions options) {
  options.cures = options.likely = false;
  try {
    check(job, options.megatron);
    const SearchResult result = search(job, options);
    return result.recommended ? described(result.candidates[*result.recommended].candidate) : "";
  } catch (const InputError&) {
    return "";  // e.g. a batch that does not divide over twice the GPUs
  }
}

class Cures {
 public:
  Cures(const Job& job, const SearchOptions& options) : job_(job), options_(options) {}

  /// Whether it helped.
  template <class Change>
  bool try_job(const std::string& what, const Change& change) {
    Job changed = job_;
    change(changed);
    return note(what, cured(changed, options_));
  }
  bool note(const std::string& what, const std::string& how) {
    if (!how.empty()) found_.push_back(fmt::format("{} ({})", what, how));
    return !how.empty();
  }
  std::vector<std::string> found() { return std::move(found_); }

 private:
  const Job& job_;
  SearchOptions options_;
  std::vector<std::string> found_;
};

/// Rounded up to a tenth of a GiB, so that it can be typed.
std::string typed(Bytes bytes) {
  const std::int64_t tenths = ceil_div(bytes.value * 10, (1_GiB).value);
  return fmt::format("{}.{}GiB", tenths / 10, tenths % 10);
}

}  // namespace

std::string shortfall_of(const SearchResult& result, std::optional<Policy> fixed) {
  const Answer* nearest = nearest_in_question(result, fixed);
  if (nearest == nullptr) {
    for (const Answer& answer : result.candidates)
      if (fixed && answer.candidate.policy == *fixed) return fmt::format("{}: {}", name_of(*fixed), answer.reason);
    return "no schedule is deployable";
  }
  std::string text = "the nearest is " + described(nearest->candidate);
  if (nearest->device_reserved > result.device_budget)
    text +=
        fmt::format(", which reserves up to {}{} of a budget of {}: {} too much",
                    format_bytes(nearest->device_reserved), when_decided(*nearest), format_bytes(result.device_budget),
                    format_bytes(nearest->device_reserved - result.device_budget));
  if (nearest->host_needed() > result.host_budget)
    text += fmt::format(", which needs {} of each host's memory{} ({} pinned), of a budget of {}: {} too much",
                        format_bytes(nearest->host_needed()), when_host_decided(*nearest),
                        format_bytes(nearest->host_pinned_per_host), format_bytes(result.host_budget),
                        format_bytes(nearest->host_needed() - result.host_budget));
  else if (!nearest->fits_host)
    text += ", which " + host_need_of(*nearest);
  return text;
}

std::vector<std::string> cures_for(const Job& job, const SearchResult& result, const SearchOptions& options) {
  Cures cures(job, options);
  const Bytes physical = job.cluster.gpu.memory.value - job.cluster.gpu.context.value;
  const Answer* nearest = nearest_in_question(result, job.offload.policy);
  if (nearest != nullptr && nearest->fits_host && nearest->device_reserved <= physical)
    cures.note("--budget " + typed(nearest->device_reserved), described(nearest->candidate));
  for (const Answer& answer : result.candidates) {
    if (job.offload.policy || !answer.feasible() || answer.deployable || !answer.objection.empty()) continue;
    cures.note(answer.requires_megatron == "ebb" ? "Ebb's own runtime" : "--megatron " + answer.requires_megatron,
               described(answer.candidate));
    break;
  }
  if (job.offload.policy) cures.try_job("offload: {policy: auto}", [](Job& j) { j.offload = {}; });
  if (job.recompute.granularity != RecomputeGranularity::full)
    cures.try_job("recompute: {granularity: full, method: uniform, layers: 1}", [](Job& j) {
      j.recompute = {.granularity = RecomputeGranularity::full, .method = "uniform", .layers = 1, .modules = {}};
    });
  for (std::int64_t micro = job.batch.micro / 2; micro >= 1; micro /= 2)
    if (cures.try_job(fmt::format("batch.micro: {}", micro), [&](Job& j) { j.batch.micro = micro; })) break;
  for (const std::int64_t factor : {2, 4, 8})
    if (cures.try_job(fmt::format("parallel.gpus: {}", job.parallel.gpus * factor),
                      [&](Job& j) { j.parallel.gpus *= factor; }))
      break;
  return cures.found();
}

}  // namespace ebb
