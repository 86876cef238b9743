// Between what users write, what the search answers, and what reports print.
#include <fmt/format.h>

#include <algorithm>

#include "models/cluster_yaml.hpp"
#include "models/quantity_text.hpp"
#include "planner/cli.hpp"
#include "planner/cli_talk.hpp"
#include "planner/compute_model.hpp"

namespace ebb::cli {

namespace {

const RequestPlaces kOptionPlaces = {.policy = {"--policy"},
                                     .chunk_numel = {"--chunk-numel"},
                                     .chunk_size_mb = {"--chunk-size-mb"},
                                     .fraction = {"--fraction"},
                                     .slots = {"--slots"},
                                     .cap = {"--cap"}};

CandidateRequest request_from(const CandidateOptions& options) {
  CandidateRequest request;
  if (options.policy) request.policy = parse_policy(*options.policy, kOptionPlaces.policy);
  if (options.chunk_numel) request.chunk_numel = parse_numel(*options.chunk_numel, kOptionPlaces.chunk_numel);
  if (options.chunk_size_mb) request.chunk_size_mb = parse_count(*options.chunk_size_mb, kOptionPlaces.chunk_size_mb);
  if (options.fraction) request.fraction = parse_ratio(*options.fraction, kOptionPlaces.fraction);
  if (options.slots)
    request.slots = static_cast<int>(std::min<std::int64_t>(parse_count(*options.slots, kOptionPlaces.slots), 1 << 20));
  if (options.cap) request.cap = parse_bytes(*options.cap, kOptionPlaces.cap);
  return request;
}

void remark_on_chunk(const Job& job, const Candidate& candidate, const Place& place) {
  const std::string oversize = oversize_of(job, candidate);
  if (!oversize.empty()) remark(fmt::format("{}: {}", place.text(), oversize));
}

template <class T>
void complete(std::optional<T>& value, const std::optional<T>& from_job) {
  if (!value) value = from_job;
}

}  // namespace

Candidate candidate_from(const CandidateOptions& options, const Job& job) {
  CandidateRequest request = request_from(options);
  const Offload& offload = job.offload;
  complete(request.policy, offload.policy);
  if (request.policy && request.policy == offload.policy) {
    complete(request.chunk_numel, offload.chunk_numel);
    complete(request.chunk_size_mb, offload.chunk_size_mb);
    complete(request.fraction, offload.fraction);
    complete(request.slots, offload.slots);
    complete(request.cap, offload.cap);
  }
  const Candidate candidate = candidate_of(request, kOptionPlaces);
  check(job, candidate, kOptionPlaces);
  remark_on_chunk(job, candidate,
                  options.chunk_numel ? kOptionPlaces.chunk_numel : job.place_of("offload.chunk_numel"));
  return candidate;
}

void remark_on_chunk(const Job& job) {
  const Offload& offload = job.offload;
  if (!offload.policy || !offload.chunk_numel) return;
  remark_on_chunk(job, {.policy = *offload.policy, .chunk_numel = *offload.chunk_numel},
                  job.place_of("offload.chunk_numel"));
}

void set_offload(Job& job, const CandidateOptions& options) {
  const CandidateRequest request = request_from(options);
  if (request.policy && request.policy != job.offload.policy) job.offload = {};
  const auto set = [&job](const auto& value, auto& field, const char* key, const Place& place) {
    if (!value) return;
    field = value;
    job.places[std::string("offload.") + key] = place;
  };
  set(request.policy, job.offload.policy, "policy", kOptionPlaces.policy);
  set(request.chunk_numel, job.offload.chunk_numel, "chunk_numel", kOptionPlaces.chunk_numel);
  set(request.chunk_size_mb, job.offload.chunk_size_mb, "chunk_size_mb", kOptionPlaces.chunk_size_mb);
  set(request.fraction, job.offload.fraction, "fraction", kOptionPlaces.fraction);
  set(request.slots, job.offload.slots, "slots", kOptionPlaces.slots);
  set(request.cap, job.offload.cap, "cap", kOptionPlaces.cap);
}

std::string quoted(const std::string& argument) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/+=:,@").find(c) != std::string_view::npos;
  };
  if (!argument.empty() && std::all_of(argument.begin(), argument.end(), plain)) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

void set_budgets(Job& job, const std::optional<std::string>& device, const std::optional<std::string>& host) {
  const auto set = [&](const std::optional<std::string>& text, std::optional<Bytes>& budget, const char* option,
                       const char* key) {
    if (!text) return;
    const Place place{option};
    budget = parse_bytes(*text, place);
    job.places[key] = place;
  };
  set(device, job.budget.device, "--budget", "budget.device");
  set(host, job.budget.host, "--host-budget", "budget.host");
}

reports::Header header_of(const Job& job) {
  reports::Header header;
  header.job = job.name;
  header.ebb_version = EBB_VERSION;
  header.model = job.model.name;
  header.cluster = job.cluster.name;
  header.gpus = job.parallel.gpus;
  header.gpus_per_host = std::min(job.cluster.gpus_per_host, job.parallel.gpus);
  header.device_budget = device_budget_of(job);
  header.host_budget = host_budget_of(job);
  header.compute_measured = job.compute.step_seconds.has_value();
  header.cluster_defaults = default_figures(job.cluster);
  return header;
}

}  // namespace ebb::cli
