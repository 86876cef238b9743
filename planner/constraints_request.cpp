// The fields of a candidate as a user writes them; the job's own rules are in constraints.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "models/nearest.hpp"
#include "models/quantity_text.hpp"
#include "planner/candidates.hpp"
#include "planner/constraints.hpp"
#include "planner/layout.hpp"

namespace ebb {

namespace {

constexpr Numel kDefaultSlotNumel{4 << 20};
constexpr int kDefaultSlots = 2;
constexpr int kMostSlots = 64;

bool uses_cap(Policy policy) { return policy == Policy::tidal; }
bool uses_chunk_size_mb(Policy policy) { return policy == Policy::windowed; }
bool uses_fraction(Policy policy) { return policy == Policy::windowed || policy == Policy::cpu_adam; }
bool uses_slots(Policy policy) { return policy == Policy::pipelined; }

std::optional<RequestProblem> unused_problem(bool given, std::optional<Policy> policy, bool (*uses)(Policy),
                                             const char* field, const char* what) {
  if (!given || !policy || uses(*policy)) return std::nullopt;
  std::string users;
  for (const Policy other : kPolicies)
    if (uses(other)) users += fmt::format("{}{}", users.empty() ? "" : " and ", name_of(other));
  return RequestProblem{field, fmt::format("{} does not use a {}", name_of(*policy), what),
                        fmt::format("leave it out, or choose {}", users)};
}

std::optional<RequestProblem> range_problem(const CandidateRequest& request) {
  if (request.chunk_numel && request.chunk_numel->value < 1)
    return RequestProblem{"chunk_numel", fmt::format("{} elements are no chunk", request.chunk_numel->value),
                          "use 1 or more, for example 1e9; full-reload is the policy without chunks"};
  if (request.chunk_size_mb && *request.chunk_size_mb < 0)
    return RequestProblem{"chunk_size_mb", fmt::format("{} MiB is negative", *request.chunk_size_mb),
                          "use 0 (one window) or more"};
  if (request.chunk_size_mb && *request.chunk_size_mb > (1 << 24))
    return RequestProblem{"chunk_size_mb", fmt::format("{} MiB is out of range", *request.chunk_size_mb),
                          "use 0 for one window over all state"};
  if (request.fraction && !(*request.fraction > 0 && *request.fraction <= 1))
    return RequestProblem{"fraction", fmt::format("{} is outside (0, 1]", *request.fraction),
                          "use 1 to offload all state, 0.5 for half of it, or the policy resident for none"};
  if (request.slots && (*request.slots < 2 || *request.slots > kMostSlots))
    return RequestProblem{"slots", fmt::format("{} slots", *request.slots),
                          fmt::format("use 2 (one is read in while the other is written back) to {}", kMostSlots)};
  if (request.cap && request.cap->value < 1)
    return RequestProblem{"cap", fmt::format("{} bytes are no cap", request.cap->value),
                          "use for example 100 GiB, or leave it out: then it is what forward and backward take without "
                          "optimizer state"};
  return std::nullopt;
}

/// Elements that one rank's optimizer owns at most, with padding.
Numel most_owned(const Job& job) {
  Numel most{0};
  for (std::int64_t pipeline = 0; pipeline < job.parallel.pipeline; ++pipeline) {
    const StageLayout stage = stage_layout(job, pipeline);
    const Numel of_stage{stage.padded(false).value / job.parallel.dense_shards() +
                         stage.padded(true).value / job.parallel.expert_shards()};
    most = std::max(most, of_stage);
  }
  return most;
}

const Place& place_of(const std::string& field, const RequestPlaces& places) {
  if (field == "chunk_numel") return places.chunk_numel;
  if (field == "chunk_size_mb") return places.chunk_size_mb;
  if (field == "fraction") return places.fraction;
  if (field == "cap") return places.cap;
  return field == "slots" ? places.slots : places.policy;
}

}  // namespace

std::optional<RequestProblem> problem_of(const CandidateRequest& request) {
  if (const auto problem = range_problem(request)) return problem;
  const std::optional<Policy> policy = request.policy;
  if (auto p = unused_problem(request.chunk_numel.has_value(), policy, uses_chunk_numel, "chunk_numel", "chunk-numel"))
    return p;
  if (auto p = unused_problem(request.chunk_size_mb.has_value(), policy, uses_chunk_size_mb, "chunk_size_mb",
                              "chunk size in MiB"))
    return p;
  if (auto p = unused_problem(request.fraction.has_value(), policy, uses_fraction, "fraction", "fraction")) return p;
  if (auto p = unused_problem(request.slots.has_value(), policy, uses_slots, "slots", "number of slots")) return p;
  return unused_problem(request.cap.has_value(), policy, uses_cap, "cap", "cap");
}

void check_request(const CandidateRequest& request, const RequestPlaces& places) {
  if (const auto problem = problem_of(request))
    throw InputError(place_of(problem->field, places), problem->problem, problem->cure);
}

Candidate candidate_of(const CandidateRequest& request, const RequestPlaces& places) {
  if (!request.policy) {
    std::string names;
    for (const Policy policy : kPolicies) names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(policy));
    throw InputError(places.policy, "no policy is given", "use one of " + names);
  }
  check_request(request, places);
  Candidate candidate;
  candidate.policy = *request.policy;
  if (candidate.policy == Policy::chunked && !request.chunk_numel)
    throw InputError(places.chunk_numel, "chunked needs a chunk-numel", "use for example 1e9");
  if (uses_chunk_numel(candidate.policy)) candidate.chunk_numel = request.chunk_numel.value_or(kDefaultSlotNumel);
  candidate.chunk_size_mb = request.chunk_size_mb.value_or(0);
  candidate.fraction = request.fraction.value_or(1.0);
  if (uses_slots(candidate.policy)) candidate.slots = request.slots.value_or(kDefaultSlots);
  if (uses_cap(candidate.policy)) candidate.cap = request.cap.value_or(Bytes{0});
  return candidate;
}

void check(const Job& job, const Candidate& candidate, const RequestPlaces& places) {
  check_policy(job, candidate.policy);
  if (!cuts_elements(candidate.policy)) return;
  const Numel share = most_owned(job);
  if (ceil_div(share.value, candidate.chunk_numel.value) <= kMostSlotChunks) return;
  throw InputError(places.chunk_numel,
                   fmt::format("slots of {} elements cut a rank's {} into more than {} chunks",
                               format_numel(candidate.chunk_numel), format_numel(share), kMostSlotChunks),
                   fmt::format("use at least {}", ceil_div(share.value, kMostSlotChunks)));
}

std::string oversize_of(const Job& job, const Candidate& candidate) {
  if (!cuts_elements(candidate.policy)) return "";
  const Numel share = most_owned(job);
  if (candidate.chunk_numel <= share) return "";
  const std::string more = fmt::format("{} elements are more than the {} that a rank owns at most",
                                       format_numel(candidate.chunk_numel), format_numel(share));
  if (candidate.policy == Policy::tidal)
    return more + ": its state is one piece, for which the default cap leaves room; a few per cent of it are enough";
  return more + ": each slot is larger than all of its state; a few per cent of it are enough";
}

Policy parse_policy(std::string_view word, const Place& place) {
  std::vector<std::string> names;
  for (const Policy policy : kPolicies) {
    if (name_of(policy) == word) return policy;
    names.emplace_back(name_of(policy));
  }
  throw InputError(place, fmt::format("unknown policy \"{}\"", word.substr(0, 40)),
                   did_you_mean(word, names, "policies"));
}

}  // namespace ebb
