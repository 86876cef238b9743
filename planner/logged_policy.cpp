#include "planner/logged_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "models/errors.hpp"
#include "planner/constraints.hpp"
#include "planner/megatron_parts.hpp"

namespace ebb {

namespace {

constexpr const char* kOfPullRequest = "offload_optimizer_states";
constexpr const char* kOfDev = "chunked_optimizer_state_offload";
constexpr const char* kOfMain = "optimizer_cpu_offload";
constexpr const char* kChunkNumel = "offload_optimizer_states_chunk_numel";
constexpr std::array kParameters = {kChunkNumel, "optimizer_state_offload_chunk_size_mb",
                                    "optimizer_state_offload_fraction", "optimizer_offload_fraction"};

/// nullopt: not printed, or not as a switch.
std::optional<bool> printed_switch(const TrainingLog& log, const char* name) {
  const auto said = log.arguments.find(name);
  if (said == log.arguments.end()) return std::nullopt;
  if (said->second == "True") return true;
  return said->second == "False" || said->second == "None" ? std::optional(false) : std::nullopt;
}

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Candidate candidate_with(const Offload& o, const Job& job) {
  RequestPlaces places;
  places.policy = job.place_of("offload.policy");
  places.chunk_numel = job.place_of("offload.chunk_numel");
  return candidate_of({o.policy, o.chunk_numel, o.chunk_size_mb, o.fraction, o.slots, o.cap}, places);
}

/// The job's block; where it has the log's policy, what it leaves open is the log's.
Offload completed(Offload offload, const Candidate& printed) {
  if (offload.policy != printed.policy) return offload;
  if (printed.policy == Policy::chunked && !offload.chunk_numel) offload.chunk_numel = printed.chunk_numel;
  if (printed.policy == Policy::windowed && !offload.chunk_size_mb) offload.chunk_size_mb = printed.chunk_size_mb;
  const bool has_fraction = printed.policy == Policy::windowed || printed.policy == Policy::cpu_adam;
  if (has_fraction && !offload.fraction) offload.fraction = printed.fraction;
  return offload;
}

}  // namespace

std::string offload_text(const Candidate& c) {
  const std::string policy = fmt::format("policy: {}", name_of(c.policy));
  switch (c.policy) {
    case Policy::resident:
    case Policy::full_reload:
      return policy;
    case Policy::chunked:
      return fmt::format("{}, chunk_numel: {}", policy, c.chunk_numel.value);
    case Policy::windowed:
      return fmt::format("{}, chunk_size_mb: {}, fraction: {}", policy, c.chunk_size_mb, c.fraction);
    case Policy::cpu_adam:
      return fmt::format("{}, fraction: {}", policy, c.fraction);
    case Policy::pipelined:
      return fmt::format("{}, chunk_numel: {}, slots: {}", policy, c.chunk_numel.value, c.slots);
    case Policy::tidal:
      return fmt::format("{}, chunk_numel: {}{}", policy, c.chunk_numel.value,
                         c.cap.value > 0 ? fmt::format(", cap: {}", c.cap.value) : "");
  }
  return policy;
}

std::optional<Candidate> printed_policy(const TrainingLog& log, const std::string& file) {
  const auto of_pull_request = printed_switch(log, kOfPullRequest);
  const auto of_dev = printed_switch(log, kOfDev);
  const auto of_main = printed_switch(log, kOfMain);
  if (!of_pull_request && !of_dev && !of_main) return std::nullopt;
  const bool is_dev = of_dev && !log.arguments.contains(kChunkNumel);
  bool chunked = of_pull_request.value_or(false);
  bool windowed = of_dev.value_or(false);
  if (is_dev && chunked) {
    windowed = true;
    chunked = false;
  }
  MegatronArguments arguments;
  arguments.file = file;
  const auto add = [&](const std::string& name, const std::string& value) {
    arguments.arguments.push_back({.name = with_dashes(name), .values = {value}, .place = {file}});
  };
  if (chunked) add(kOfPullRequest, "True");
  if (windowed) add(kOfDev, "True");
  if (of_main.value_or(false)) add(kOfMain, "True");
  for (const char* name : kParameters)
    if (const auto said = log.arguments.find(name); said != log.arguments.end()) add(name, said->second);
  const MegatronValues values(arguments);
  ImportedJob imported;
  imported.job.file = file;
  import_offload({values, imported});
  if (imported.job.megatron.optimizer_cpu_offload)
    throw InputError({file},
                     fmt::format("its run printed {} True beside {} True", kOfMain, chunked ? kOfPullRequest : kOfDev),
                     "give the log of one run: Megatron-LM takes one of the two");
  if (!imported.job.offload.policy) return Candidate{};
  return candidate_with(imported.job.offload, imported.job);
}

LoggedPolicy logged_policy(const Job& job, const TrainingLog& log, const std::string& file) {
  const std::optional<Candidate> printed = printed_policy(log, file);
  if (!job.offload.policy) return printed ? LoggedPolicy{*printed, PolicySource::log} : LoggedPolicy{};
  if (!printed) return {candidate_with(job.offload, job), PolicySource::job};
  const Candidate named = candidate_with(completed(job.offload, *printed), job);
  if (named == *printed) return {named, PolicySource::log};
  throw InputError({file},
                   fmt::format("by its arguments the run had offload: {{{}}}, the job has offload: {{{}}}",
                               offload_text(*printed), offload_text(named)),
                   "give the log of the job's policy, or leave the job's offload: out, and the log's is taken");
}

}  // namespace ebb
