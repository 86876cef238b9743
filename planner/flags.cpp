#include "planner/flags.hpp"

#include <fmt/format.h>

#include <array>

#include "models/nearest.hpp"

namespace ebb {

namespace {

constexpr std::array kMegatrons = {Megatron::any, Megatron::main, Megatron::dev, Megatron::pr6544};

}  // namespace

std::string_view name_of(Megatron megatron) {
  switch (megatron) {
    case Megatron::any:
      return "any";
    case Megatron::main:
      return "main";
    case Megatron::dev:
      return "dev";
    case Megatron::pr6544:
      return "pr6544";
  }
  return "";
}

Megatron parse_megatron(std::string_view word, const Place& place) {
  std::vector<std::string> names;
  for (const Megatron megatron : kMegatrons) {
    if (name_of(megatron) == word) return megatron;
    names.emplace_back(name_of(megatron));
  }
  throw InputError(place, fmt::format("unknown Megatron \"{}\"", word), did_you_mean(word, names, "Megatrons"));
}

std::vector<std::string> flags_of(const Candidate& candidate) {
  switch (candidate.policy) {
    case Policy::resident:
    case Policy::pipelined:
      return {};
    case Policy::full_reload:
      return {"--offload-optimizer-states"};
    case Policy::chunked:
      return {"--offload-optimizer-states", "--offload-optimizer-states-chunk-numel",
              std::to_string(candidate.chunk_numel.value)};
    case Policy::windowed:
      return {"--chunked-optimizer-state-offload", "--optimizer-state-offload-chunk-size-mb",
              std::to_string(candidate.chunk_size_mb), "--optimizer-state-offload-fraction",
              fmt::format("{}", candidate.fraction)};
    case Policy::cpu_adam:
      return {"--optimizer-cpu-offload", "--optimizer-offload-fraction", fmt::format("{}", candidate.fraction),
              "--use-precision-aware-optimizer"};
  }
  return {};
}

std::string_view requirement_of(Policy policy) {
  switch (policy) {
    case Policy::resident:
      return "";
    case Policy::cpu_adam:
      return "main";
    case Policy::windowed:
      return "dev";
    case Policy::full_reload:  // on dev the same flag is an alias of windowed with chunk 0: another schedule
    case Policy::chunked:
      return "pr6544";
    case Policy::pipelined:
      return "ebb";
  }
  return "";
}

bool accepts(Megatron megatron, Policy policy) {
  const std::string_view requirement = requirement_of(policy);
  if (requirement == "ebb") return false;
  if (requirement.empty() || requirement == "main" || megatron == Megatron::any) return true;
  return requirement == name_of(megatron);
}

std::string takers_of(Policy policy) {
  const std::string_view requirement = requirement_of(policy);
  if (requirement.empty()) return "every Megatron-LM";
  if (requirement == "main") return "Megatron-LM main, dev and pull request 6544";
  if (requirement == "dev") return "Megatron-LM dev (since #6244); main and pull request 6544 do not have the flags";
  if (requirement == "pr6544")
    return "Megatron-LM with pull request 6544 (open); main and dev do not take the flags so";
  return "Ebb's own runtime; no Megatron-LM has this schedule";
}

namespace {

bool copied_as_is(Dtype type) { return type == Dtype::fp32 || type == Dtype::bf16; }

/// Job settings that need --use-precision-aware-optimizer.
bool precision_aware(const Precision& precision) { return precision.state_bytes() != 12; }

/// Recipes under which Megatron, not the fused Adam, keeps the master weights of a precision-aware optimizer.
bool megatron_keeps_masters(const Precision& precision) {
  return precision.master == Dtype::fp32 && precision.fp8 != Fp8Recipe::none && precision.fp8 != Fp8Recipe::delayed;
}

std::string objection_to_reload(const Precision& precision, bool chunked) {
  if (!copied_as_is(precision.exp_avg) || !copied_as_is(precision.exp_avg_sq))
    return "pull request 6544 takes fp32 or bf16 moments only: fp16 and fp8 moments are stored scaled, and a save "
           "reads "
           "the host bytes as they are";
  if (precision_aware(precision) && !megatron_keeps_masters(precision))
    return "pull request 6544 refuses a precision-aware optimizer that keeps the master weights itself (always so "
           "without "
           "an fp8 recipe tensorwise, blockwise or mxfp8)";
  if (chunked && precision.fp8 == Fp8Recipe::mxfp8 && precision.fp8_param_gather)
    return "chunked offload refuses the reuse of the gradient buffer that MXFP8 parameter gather needs";
  return "";
}

std::string objection_to_windows(const Precision& precision) {
  if (!copied_as_is(precision.exp_avg) || !copied_as_is(precision.exp_avg_sq))
    return "the dev branch takes fp32 or bf16 moments only";
  if (precision.master == Dtype::fp16 || precision.master == Dtype::fp8)
    return "the dev branch takes fp32 main parameters only";
  return "";
}

std::string objection_to_cpu_adam(const Precision& precision) {
  if (precision.exp_avg != Dtype::fp32 || precision.exp_avg_sq != Dtype::fp32 || precision.master != Dtype::fp32)
    return "Adam on the host keeps fp32 state whatever the job's exp_avg, exp_avg_sq and master say: other numerics";
  if (precision.fp8_param_gather && precision.fp8 != Fp8Recipe::delayed)
    return "optimizer CPU offload takes fp8 parameter gather with the delayed recipe only";
  return "";
}

}  // namespace

std::string objection_to(const Job& job, const Candidate& candidate) {
  switch (candidate.policy) {
    case Policy::resident:
    case Policy::pipelined:
      return "";
    case Policy::full_reload:
      return objection_to_reload(job.precision, false);
    case Policy::chunked:
      return objection_to_reload(job.precision, true);
    case Policy::windowed:
      return objection_to_windows(job.precision);
    case Policy::cpu_adam:
      return objection_to_cpu_adam(job.precision);
  }
  return "";
}

}  // namespace ebb
